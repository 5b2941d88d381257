"""Addresses of schedules."""

from django.urls import path

from jobqueue.api.resources.schedules import views

SCHEDULE = "schedules/<int:schedule_id>/"

routes = [
    path("schedules/", views.SchedulesView.as_view(), name="schedules"),
    path("schedules/preview/", views.PreviewView.as_view(), name="schedule-preview"),
    path(SCHEDULE, views.ScheduleView.as_view(), name="schedule"),
    path(f"{SCHEDULE}ticks/", views.TicksView.as_view(), name="schedule-ticks"),
    path(f"{SCHEDULE}enable/", views.EnableView.as_view(), name="schedule-enable"),
    path(f"{SCHEDULE}disable/", views.DisableView.as_view(), name="schedule-disable"),
    path(f"{SCHEDULE}run/", views.RunView.as_view(), name="schedule-run"),
]
