"""Django: 5 requests per user and minute. While the server is unavailable, each process decides by itself."""
import os
import django.conf, django.urls
from django.core.management import execute_from_command_line
from django.http import HttpResponse
import gothrottle

limits = gothrottle.connect("redis://" + os.environ["ADDR"], fail_local=1.0, script=os.environ.get("SCRIPT") == "1")
users = limits.rate("user", per_minute=5)

def limited(get_response):
    def middleware(request):
        if "user" not in request.GET:
            return HttpResponse("?user= is missing\n", status=400)  # better: from the session
        ask = users.wait if request.path == "/wait" else users.allow  # a job waits for its turn
        units = request.GET.get("units", "1")
        result = ask(request.GET["user"], max(1, int(units) if units.isdigit() else 1))
        response = get_response(request) if result.allowed else HttpResponse("too many requests\n", status=result.status)
        for name, value in result.headers.items():
            response[name] = value
        return response
    return middleware

def hello(request):
    return HttpResponse("hello\n")

urlpatterns = [django.urls.path("", hello), django.urls.path("wait", hello)]
django.conf.settings.configure(ROOT_URLCONF=__name__, MIDDLEWARE=[f"{__name__}.limited"], ALLOWED_HOSTS=["127.0.0.1"], SECRET_KEY="x")
limits.check()  # a server without the module ends the program; one that's unavailable is logged
execute_from_command_line(["django", "runserver", "--noreload", f"127.0.0.1:{os.environ['PORT']}"])
