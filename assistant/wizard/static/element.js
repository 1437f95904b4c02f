function element(tag, name, attributes = {}) {
  const node = document.createElement(tag);
  node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// The name of one drawing of the wizard, of which a page may show several.
function view_of(el) {
  const { dataset } = el.closest(".ptsa-wizard");
  return (dataset.view ??= Math.random().toString(36).slice(2));
}
