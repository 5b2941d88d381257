"""Addresses of the shop."""

from django.urls import path

from project.shop import views

app_name = "shop"
urlpatterns = [
    path("", views.index, name="index"),
    path("orders/", views.create_order, name="create-order"),
]
