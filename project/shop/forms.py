"""What an order must look like, for the page and for JSON alike."""

from django import forms

from project.shop.catalog import ARTICLES, MAX_QUANTITY


class OrderForm(forms.Form):
    sku = forms.ChoiceField(
        label="Article", choices=[(article.sku, article.name) for article in ARTICLES.values()]
    )
    quantity = forms.IntegerField(min_value=1, max_value=MAX_QUANTITY, initial=1)
    email = forms.EmailField(
        label="Email", widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )


class JsonOrderForm(OrderForm):
    """Programs may also mark an order, which the demo does."""

    marked = forms.BooleanField(required=False)
