/** The API's reference, with a form to try each route. The pages' content security policy allows no inline script. */

globalThis.SwaggerUIBundle({ url: "openapi.json", dom_id: "#reference", deepLinking: true });
