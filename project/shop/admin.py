"""The shop's rows in the admin: to look at, since only orders and jobs may write them."""

from django.contrib import admin

from jobqueue.admin import JobsOfObject
from project.shop.models import Charge, Delivery, Order, StockMovement


class ReadOnlyAdmin(admin.ModelAdmin):
    """A list and a page of values; nothing can be added, changed or deleted."""

    show_full_result_count = False

    def has_add_permission(self, request):
        return False

    def has_change_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


@admin.register(Order)
class OrderAdmin(JobsOfObject, ReadOnlyAdmin):
    jobs_tag = "order:{pk}"
    list_display = ["id", "sku", "quantity", "email", "amount_cents", "marked", "created_at"]
    list_filter = ["marked"]
    exclude = ["marked"]  # a switch of the demo, and nothing of the shop


@admin.register(StockMovement)
class StockMovementAdmin(ReadOnlyAdmin):
    list_display = ["id", "order", "sku", "quantity", "job_id", "created_at"]
    list_select_related = ["order"]


@admin.register(Charge)
class ChargeAdmin(ReadOnlyAdmin):
    list_display = ["id", "order", "receipt", "amount_cents", "job_id", "created_at"]
    list_select_related = ["order"]


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = ["id", "sku", "quantity", "job_id", "created_at"]
