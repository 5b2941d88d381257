"""The application that uvicorn serves for ``python -m benchmarks api``."""

from django.core.asgi import get_asgi_application

application = get_asgi_application()
