// "Something is wrong?": asked about a cell that failed. What the cell printed and the Python of its kernel go to a
// kernel that has the assistant, and its answer is shown at the side; the notebook and its kernel are left alone.
const NAME = "torch-setup-assistant";
const COMMAND = `${NAME}:ask`;
const MOST = 200_000; // characters; the assistant reads the last half of them
const ANSWERS_WITHIN = 5_000; // ms, chosen: a kernel that is busy with another cell answers once that is done
// In hexadecimal digits: what a stranger's notebook might make of it is then still no code.
const INTERPRETER = "__import__('sys').executable.encode().hex()";
const DOOR = "import torch_setup_assistant\nfrom assistant.wizard import open_doctor";

// What a cell printed, its traceback included.
function printed_by(cell) {
  const { outputs } = cell.model;
  const texts = Array.from({ length: outputs.length }, (_, at) => outputs.get(at).toJSON()).map((output) => {
    if (output.output_type === "stream") return [output.text].flat().join("");
    if (output.output_type !== "error") return "";
    return `${output.traceback.join("\n") || `${output.ename}: ${output.evalue}`}\n`;
  });
  return texts.join("").slice(-MOST);
}

const has_failed = ({ model }) =>
  model.type === "code" &&
  Array.from({ length: model.outputs.length }, (_, at) => model.outputs.get(at)).some(({ type }) => type === "error");

const runs = (kernel, code) =>
  kernel
    .requestExecute({ code, silent: true, store_history: false })
    .done.then((reply) => reply.content.status === "ok")
    .catch(() => false);

// The interpreter of a notebook's kernel: as it says itself, or, where it does not answer, as Jupyter starts it.
async function interpreter_of(session, specs) {
  const kernel = session?.kernel;
  const started = specs?.kernelspecs[kernel?.name]?.argv?.[0] ?? "";
  if (!kernel || !["idle", "busy"].includes(kernel.status)) return started;
  const asked = kernel.requestExecute({ code: "", silent: true, user_expressions: { python: INTERPRETER } }).done;
  const late = new Promise((done) => setTimeout(done, ANSWERS_WITHIN));
  const reply = await Promise.race([asked, late]).catch(() => null);
  const [, digits] = /^'((?:[0-9a-f]{2})+)'$/.exec(reply?.content.user_expressions?.python?.data?.["text/plain"]) ?? [];
  return digits ? new TextDecoder().decode(Uint8Array.from(digits.match(/../g), (two) => parseInt(two, 16))) : started;
}

// The page at the side, and the kernel that it runs in, which is kept for the next question.
class Answer {
  constructor(app, lab, { apputils, outputarea, lumino, widgets, rendermime }) {
    Object.assign(this, { app, lab, widgets, known: null, shown: false });
    const { serviceManager } = app;
    this.session = new apputils.SessionContext({
      kernelManager: serviceManager.kernels,
      sessionManager: serviceManager.sessions,
      specsManager: serviceManager.kernelspecs,
      path: NAME, // a page that is loaded again finds the same session by it
      name: lab.words.ask,
      type: "console",
      kernelPreference: { shouldStart: false },
    });
    this.rendermime = rendermime.clone();
    const model = new outputarea.OutputAreaModel({ trusted: true });
    this.area = new outputarea.SimplifiedOutputArea({ model, rendermime: this.rendermime });
    this.panel = new lumino.Panel();
    Object.assign(this.panel, { id: `${NAME}-answer` });
    Object.assign(this.panel.title, { caption: lab.words.ask, icon: lab.icon });
    this.panel.addClass("ptsa-side");
    this.panel.node.setAttribute("role", "region");
    this.panel.node.setAttribute("aria-label", lab.words.ask);
    this.panel.addWidget(this.area);
    this.waiting = Object.assign(document.createElement("div"), { className: "ptsa-starting" });
    this.waiting.setAttribute("role", "status");
  }

  async ask(printed, asker) {
    const { shell, serviceManager } = this.app;
    const { session } = asker.sessionContext;
    this.asker = asker;
    if (!this.panel.isAttached) shell.add(this.panel, "right", { rank: 1100 });
    shell.activateById(this.panel.id);
    this.panel.node.append(this.waiting);
    this.waiting.textContent = this.lab.words.starting;
    try {
      const { specs } = serviceManager.kernelspecs;
      const python = await interpreter_of(session, specs);
      const kernel = await this.kernel([...new Set(["python3", specs.default, session?.kernel?.name])], specs);
      const told = [printed, python].map((text) => JSON.stringify(text)); // a text of JSON is one of Python, too
      const language = this.lab.language ? `, language=${JSON.stringify(this.lab.language)}` : "";
      this.area.future = kernel.requestExecute({ code: `${DOOR}\nopen_doctor(${told}${language})` });
      await this.area.future.done;
    } finally {
      this.waiting.remove();
      if (!this.area.model.length) this.panel.parent = null; // there is nothing to see
    }
  }

  // The first of some kernels that has the assistant.
  async kernel(names, specs) {
    const { session } = this;
    const at_hand = () => session.session?.kernel;
    if (!this.known) await session.initialize();
    const usable = async () => at_hand() && (await this.lab.leave_folder(at_hand())) && runs(at_hand(), DOOR);
    const same = this.known && this.known === at_hand()?.id && (await usable());
    for (const name of same || (!this.known && (await usable())) ? [] : names.filter((one) => specs.kernelspecs[one])) {
      await session.changeKernel({ name });
      if (await usable()) break;
      await session.shutdown();
    }
    if (!at_hand()) throw new Error(this.lab.words.nowhere);
    this.known = at_hand().id;
    if (!this.shown) await this.show_widgets();
    return at_hand();
  }

  // The answer made an environment: the notebook that asked goes on with its kernel.
  async use({ kernel: name }) {
    const { shell, serviceManager } = this.app;
    await serviceManager.kernelspecs.refreshSpecs(); // the kernel may be a minute old
    await this.asker.sessionContext.changeKernel({ name });
    shell.activateById(this.asker.id);
  }

  // Widgets are drawn for documents alone: what ipywidgets asks of one stands here.
  async show_widgets() {
    const nothing = { getMetadata: () => undefined, metadata: new Map() };
    const document_like = { sessionContext: this.session, model: nothing, path: NAME, saveState: { connect() {} } };
    this.widgets.registerWidgetManager(document_like, this.rendermime, []);
    this.shown = true;
    await new Promise((done) => setTimeout(done)); // it knows the kernel some promises later
  }
}

// A button below each cell that fails while somebody looks on, and a command for any cell that printed something.
export async function ask_about_cells(app, lab, { tracker, palette, rendermime }, shared) {
  const names = ["@jupyterlab/notebook", "@jupyterlab/apputils", "@jupyterlab/outputarea", "@lumino/widgets"];
  const [notebook, apputils, outputarea, lumino] = await Promise.all(names.map(shared));
  const widgets = await shared("@jupyter-widgets/jupyterlab-manager").catch(() => null);
  if (!widgets?.registerWidgetManager || !outputarea || !lumino) return; // the wizard could not be drawn at all
  let answer = null;
  let asking = false;
  const ask = async (panel, cell) => {
    if (asking) return; // pressed twice
    asking = true;
    answer ??= new Answer(app, lab, { apputils, outputarea, lumino, widgets, rendermime });
    await answer
      .ask(printed_by(cell), panel)
      .catch((error) => lab.show_error(lab.words.unasked, error));
    asking = false;
  };
  document.addEventListener("ptsa-use-kernel", (event) => {
    if (!answer?.panel.node.contains(event.target) || answer.asker.isDisposed) return;
    event.preventDefault();
    answer.use(event.detail).catch((error) => lab.show_error(lab.words.unopened, error));
  });
  const offer = (panel, cell) => {
    const { node } = cell.outputArea;
    node.querySelector(":scope > .ptsa-ask")?.remove();
    const button = Object.assign(document.createElement("button"), { className: "ptsa-ask", textContent: lab.words.ask });
    button.addEventListener("click", () => void ask(panel, cell));
    const follow = () => {
      if (has_failed(cell)) return;
      cell.model.outputs.changed.disconnect(follow);
      button.remove();
    };
    cell.model.outputs.changed.connect(follow);
    node.append(button);
  };
  notebook.NotebookActions.executed.connect((_sender, { notebook: content, cell }) => {
    const panel = tracker.find((one) => one.content === content);
    if (panel && has_failed(cell) && /python/.test(cell.model.mimeType)) offer(panel, cell);
  });
  const meant = ({ clicked }) => {
    const cells = tracker.currentWidget?.content.widgets ?? [];
    const node = clicked ? app.contextMenuHitTest((one) => one.classList.contains("jp-CodeCell")) : null;
    const active = cells.find((cell) => cell.node === node) ?? tracker.activeCell;
    return [active, ...cells].find((cell) => cell && (cell === active ? cell.model.type === "code" && printed_by(cell) : has_failed(cell)));
  };
  app.commands.addCommand(COMMAND, {
    label: lab.words.ask,
    caption: lab.words.asked,
    isEnabled: (args) => Boolean(meant(args)),
    execute: (args) => ask(tracker.currentWidget, meant(args)),
  });
  palette?.addItem({ command: COMMAND, category: "Notebook" });
  app.contextMenu.addItem({ command: COMMAND, args: { clicked: true }, selector: ".jp-CodeCell .jp-OutputArea", rank: 100 });
}
