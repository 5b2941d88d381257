// Starts Swagger UI on the API's own document. In a file of its own: the page's policy allows no
// script in the page.
"use strict";

(() => {
  const place = document.getElementById("docs");
  const { document: url, csrf } = place.dataset;

  window.SwaggerUIBundle({
    url,
    domNode: place,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    validatorUrl: null, // nothing is sent to anybody else
    requestInterceptor(request) {
      // What a session changes needs the token of its page; no other site gets to see it.
      const target = new URL(request.url, window.location.href);
      if (target.origin === window.location.origin && request.method !== "GET") {
        request.headers["X-CSRFToken"] = csrf;
      }
      return request;
    },
  });
})();
