// Makes the parts of the page answer: any two dates, the charts, the table of all numbers.

const DRAWN_AT_ONCE = 10_000;

async function start() {
  const index = JSON.parse(document.getElementById("index").textContent);
  const columns = await unpack(index, document.getElementById("numbers").textContent.trim());
  const release = new Release(index, columns);
  const tool = explorer(release, { confidence: index.confidence, factor: index.factor });
  document.getElementById("explore").replaceChildren(tool.node);
  const chosen = (first, last) => {
    tool.show(first, last);
    document.getElementById("explore").scrollIntoView({ behavior: "smooth", block: "nearest" });
  };
  // Of many numbers, what is asked for first answers first, and the charts follow when the browser has drawn it. Of few
  // they come at once, for a screenshot is of the first picture. Where no frame is ever drawn, a timer ends the wait.
  document.documentElement.dataset.ready = "explorer";
  if (index.rows > DRAWN_AT_ONCE) {
    await new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 200); });
  }
  const main = document.querySelector("main"), toggle = document.getElementById("consistent");
  const again = answering(main, release, { confidence: index.confidence, chosen });
  const switched = () => { main.classList.toggle("draw-raw", !toggle.checked); again(); };
  if (toggle && !toggle.checked) switched();
  toggle?.addEventListener("change", switched);
  document.getElementById("table").replaceChildren(numbersTable(release, index.confidence));
  document.documentElement.dataset.ready = "all";
}

start().catch((error) => {
  document.getElementById("explore").textContent = `This part of the page could not be made: ${error.message}`;
  throw error;
});
