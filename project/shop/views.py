"""The shop's page for people, and its address for programs."""

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from project.shop.forms import JsonOrderForm, OrderForm
from project.shop.ordering import place_order
from project.shop.overview import recent_orders


@require_http_methods(["GET", "HEAD", "POST"])
def index(request: HttpRequest) -> HttpResponse:
    """Show the order form and the last orders; take an order."""
    form = OrderForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        order = place_order(**form.cleaned_data)
        messages.success(request, f"Order {order.pk} is placed.")
        return redirect("shop:index")
    return render(request, "shop/index.html", {"form": form, "orders": recent_orders()})


@csrf_exempt  # it reads no cookie: there is no session that another site could abuse
@require_POST
def create_order(request: HttpRequest) -> JsonResponse:
    """Take an order as a JSON object; answer 201 once it and its jobs are committed, else 400."""
    try:
        fields = json.loads(request.body)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return JsonResponse({"error": "Send the order as a JSON object."}, status=400)
    form = JsonOrderForm(fields)
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=400)
    order = place_order(**form.cleaned_data)
    jobs = {name: str(job_id) for name, job_id in order.job_ids.items()}
    return JsonResponse({"id": order.pk, "jobs": jobs}, status=201)
