"""Addresses of the demo site: the shop, the admin, and the jobs behind them."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="shop:index")),
    path("shop/", include("project.shop.urls")),
    path("admin/", admin.site.urls),
    path("jobqueue/", include("jobqueue.urls")),
]
