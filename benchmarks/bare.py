"""A view as anybody would write it: a token, a serializer, one row through the ORM, 201."""

from typing import Any

from rest_framework import serializers
from rest_framework.authentication import TokenAuthentication
from rest_framework.parsers import JSONParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmarks.app.models import Row


class RowSerializer(serializers.ModelSerializer[Row]):
    class Meta:
        model = Row
        fields = ("id", "number", "who")


class BareView(APIView):
    authentication_classes = (TokenAuthentication,)
    permission_classes = (IsAuthenticated,)
    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)

    def post(self, request: Request, **_: Any) -> Response:
        serializer = RowSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(serializer.data, status=201)
