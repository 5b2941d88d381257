"""The shop as a Django app."""

from django.apps import AppConfig


class ShopConfig(AppConfig):
    name = "project.shop"
    label = "shop"
    verbose_name = "Shop"
