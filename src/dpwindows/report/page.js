// Draws every chart of the page from the specification beside it. Expressions are interpreted, not compiled, so that
// the page's policy needs no eval.
const options = { renderer: "svg", actions: false, ast: true, tooltip: { disableDefaultStyle: true, theme: "page" } };
for (const place of document.querySelectorAll("[data-chart]")) {
  const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  vegaEmbed(place, spec, options).catch((error) => {
    place.textContent = "This chart could not be drawn: " + error.message;
  });
}
