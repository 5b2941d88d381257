"""Settings of the demo project, read from the environment.

| variable | default | meaning |
| --- | --- | --- |
| DATABASE_URL | sqlite in `db.sqlite3` | the database of the shop and of its jobs |
| REDIS_URL | none | where hints go; without it they go over PostgreSQL, or workers poll |
| SECRET_KEY | a public one, for development | Django's signing key |
| DEBUG | off | Django's debug pages |
| ALLOWED_HOSTS | loopback names | hosts the site answers to, comma separated |
| CSRF_TRUSTED_ORIGINS | none | origins, with scheme, that may post forms through a proxy |
| SERVE_STATIC | as DEBUG | let the web process serve static files itself |
| LOG_LEVEL | INFO | level of everything logged to standard error |
| JOBQUEUE_OPTIONS | {} | JSON object merged into the OPTIONS of the default TASKS alias |
| GATEWAY_URL | http://127.0.0.1:8100 | where `python -m project.gateway` listens |
| GATEWAY_TIMEOUT_SECONDS | 2 | how long a task waits for an answer of theirs |
| SHOP_FAIL_RATE | 0 | fraction of attempts that fail on purpose |
| SHOP_WORK_SECONDS | 0 | how long each task pretends to work |
| CHECKPOINT_DIR | none | where tasks of marked orders report that they are inside |
| CHECKPOINT_SECONDS | 1.5 | how long they linger there |
"""

from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="django-insecure-for-development-only")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
SERVE_STATIC = env.bool("SERVE_STATIC", default=DEBUG)

INSTALLED_APPS = [
    "jobqueue",
    "project",
    "project.shop",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "jobqueue.api.middleware.problem_details",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.asgi.application"
WSGI_APPLICATION = "project.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Database -----------------------------------------------------------------------------------

DATABASE_URL = env.str("DATABASE_URL", default="") or f"sqlite:///{BASE_DIR / 'db.sqlite3'}"
DATABASES = {"default": env.db_url_config(DATABASE_URL)}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Writers queue at BEGIN instead of failing in the middle of a transaction, and a commit
    # has reached the disk before anybody hears of it.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
    }

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Jobs ---------------------------------------------------------------------------------------

REDIS_URL = env.str("REDIS_URL", default="")

TASKS = {
    "default": {
        "BACKEND": "jobqueue.backend.JobQueueBackend",
        "QUEUES": ["default", "stock", "payments", "mail"],
        "OPTIONS": env.json("JOBQUEUE_OPTIONS", default={}),
    }
}

# --- The shop and its outside world -------------------------------------------------------------

GATEWAY_URL = env.str("GATEWAY_URL", default="http://127.0.0.1:8100")
GATEWAY_TIMEOUT_SECONDS = env.float("GATEWAY_TIMEOUT_SECONDS", default=2.0)
FAIL_RATE = env.float("SHOP_FAIL_RATE", default=0.0)
WORK_SECONDS = env.float("SHOP_WORK_SECONDS", default=0.0)
CHECKPOINT_DIR = env.str("CHECKPOINT_DIR", default="")
CHECKPOINT_SECONDS = env.float("CHECKPOINT_SECONDS", default=1.5)

# --- The rest -----------------------------------------------------------------------------------

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {"django": {"level": LOG_LEVEL}},  # it has a level of its own, which would win
}
