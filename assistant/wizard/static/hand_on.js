// An extension of JupyterLab takes such an event, or nobody does.
function hand_on(el, model, { event, detail }) {
  const asked = new CustomEvent(event, { detail, bubbles: true, cancelable: true });
  if (el.dispatchEvent(asked)) model.send({ refused: event, detail });
}

