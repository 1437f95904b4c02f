// "Set up PyTorch": a launcher tile and a command that open the guided notebook, the notebook shown as a page that runs
// by itself, what the wizard on that page asks of JupyterLab, and questions about a cell that failed (cells.js).
// JupyterLab 4 and Notebook 7 load these files as they stand: a federated module is an object with `init` and `get`, so
// nothing needs a bundler or Node.js.
(() => {
  const HERE = document.currentScript.src; // the notebook lies beside this file
  const PACKAGE = "torch-setup-assistant";
  const COMMAND = `${PACKAGE}:open`;
  const CODE = `${PACKAGE}:show-code`;
  const WORDS = {
    en: {
      label: "Set up PyTorch",
      caption: "Find the PyTorch that fits this machine, install it, and prove that it computes correctly",
      failed: "The guided notebook could not be created",
      file: "set-up-pytorch.ipynb",
      call: "open_wizard()",
      code: "Set up PyTorch: show the notebook's code",
      starting: "Starting the guided setup, which takes about ten seconds …",
      unopened: "The notebook could not be opened",
      ask: "Something is wrong?",
      asked: "Find the cause of what this cell printed, and what mends it",
      unasked: "The cause could not be looked for",
      nowhere: "No kernel here has the assistant. Save the output as a file and run in a terminal: assistant diagnose FILE",
    },
    zh: {
      label: "配置 PyTorch",
      caption: "找到适合这台机器的 PyTorch，安装并验证计算结果",
      failed: "无法创建向导笔记本",
      file: "set-up-pytorch.ipynb",
      call: 'open_wizard(language="zh_CN")',
      code: "配置 PyTorch：显示笔记本代码",
      starting: "正在启动安装向导，大约需要十秒……",
      unopened: "无法打开该笔记本",
      ask: "遇到问题？",
      asked: "查找该单元格报错的原因和解决办法",
      unasked: "无法查找原因",
      nowhere: "这里没有任何内核装有本助手。请把输出保存为文件，并在终端中运行：assistant diagnose FILE",
    },
  };
  const CALLS = ["open_wizard()", 'open_wizard(language="en")', 'open_wizard(language="zh_CN")'];
  // A chip with a check mark; where JupyterLab draws it as an icon, the theme colours it.
  const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">
    <g class="jp-icon3" fill="#1e88e5">
      <path d="M4.5 3h7A1.5 1.5 0 0 1 13 4.5v7a1.5 1.5 0 0 1-1.5 1.5h-7A1.5 1.5 0 0 1 3 11.5v-7A1.5 1.5 0 0 1 4.5 3Zm.2 1.2a.5.5 0 0 0-.5.5v6.6c0 .3.2.5.5.5h6.6a.5.5 0 0 0 .5-.5V4.7a.5.5 0 0 0-.5-.5Z" fill-rule="evenodd"/>
      <path d="M5.2 1h1v2h-1zM9.8 1h1v2h-1zM5.2 13h1v2h-1zM9.8 13h1v2h-1zM1 5.2h2v1H1zM1 9.8h2v1H1zM13 5.2h2v1h-2zM13 9.8h2v1h-2z"/>
      <path d="m7.3 10.6-2.1-2.1.8-.8 1.3 1.3 2.9-2.9.8.8Z"/>
    </g>
  </svg>`;
  // The wizard fills the panel: of the notebook only outputs are seen.
  const STYLE = `
    .ptsa-page { container: ptsa-panel / size; }
    .ptsa-page :is(.jp-MarkdownCell, .jp-RawCell, .jp-CellHeader, .jp-Cell-inputWrapper, .jp-OutputCollapser,
      .jp-OutputPrompt, .jp-OutputArea-promptOverlay, .jp-CellFooter, .jp-Notebook-footer, .jp-cell-menu,
      .jp-cell-toolbar) { display: none; }
    .ptsa-page .jp-Notebook .jp-WindowedPanel-viewport, .ptsa-page .jp-Notebook .jp-Cell,
    .ptsa-page .jp-OutputArea-child .jp-OutputArea-output { padding: 0; margin: 0; border: 0; }
    .ptsa-page .jp-Notebook .jp-WindowedPanel-outer::after { display: none; }
    .ptsa-page .jp-Notebook .jp-Cell :is(.jp-Cell-outputWrapper, .jp-OutputArea) { margin: 0; }
    .ptsa-page .jp-OutputArea-output:is(.jp-RenderedText, [data-mime-type^="text/"]) { padding: 1rem 1.5rem; }
    :is(.ptsa-page, .ptsa-side) .jp-OutputArea-output .jupyter-widgets.ptsa-wizard {
      height: 100cqh; min-height: 0; max-height: none; margin: 0; border: 0; border-radius: 0; }
    .ptsa-side { container: ptsa-panel / size; overflow: auto; background: var(--jp-layout-color1); }
    :is(#jp-right-stack, *) > .ptsa-side { min-width: min(26rem, 45vw); }
    .ptsa-side .jp-OutputArea-child .jp-OutputArea-output { padding: 0; margin: 0; }
    .ptsa-side .jp-OutputPrompt { display: none; }
    .ptsa-ask { display: block; min-height: 28px; margin: 4px 0 4px var(--jp-cell-prompt-width); padding: 0 0.8rem;
      color: var(--jp-ui-font-color1); background: var(--jp-layout-color1); border: 1px solid var(--jp-ui-font-color2);
      border-radius: 4px; font: var(--jp-ui-font-size1) var(--jp-ui-font-family); cursor: pointer; }
    .ptsa-ask:hover { background: var(--jp-layout-color2); }
    .ptsa-ask:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: 1px; }
    .ptsa-starting { position: absolute; inset: 0; display: grid; place-items: center; pointer-events: none;
      align-content: center; gap: 1rem; text-align: center; color: var(--jp-ui-font-color1); font-size: var(--jp-ui-font-size2); }
    .ptsa-starting::before { content: ""; width: 28px; height: 28px; border: 3px solid var(--jp-border-color2);
      border-top-color: var(--jp-brand-color1); border-radius: 50%; animation: ptsa-turn 1s linear infinite; }
    @keyframes ptsa-turn { to { transform: rotate(1turn); } }
  `;

  let scope = {};

  // What JupyterLab shares; Notebook 7 lacks some of it, and then null stands for the module and for its tokens.
  async function shared(name) {
    const versions = Object.values(scope[name] ?? {});
    const chosen = versions.find((version) => version.loaded) ?? versions[0];
    return chosen ? (await chosen.get())() : null;
  }

  function is_missing(error) {
    return error?.response?.status === 404;
  }

  const text_of = (source) => (Array.isArray(source) ? source.join("") : source);
  const folder_of = (path) => path.slice(0, Math.max(0, path.lastIndexOf("/")));
  const inside = (folder, name) => (folder ? `${folder}/${name}` : name);

  async function shipped_notebook(name) {
    const answer = await fetch(new URL(name, HERE), { cache: "no-cache" });
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const notebook = await answer.json();
    for (const cell of notebook.cells) cell.source = text_of(cell.source);
    return notebook;
  }

  async function guided_notebook(words) {
    const notebook = await shipped_notebook("setup.ipynb");
    for (const cell of notebook.cells) {
      if (cell.cell_type !== "code") continue;
      Object.assign(cell, { outputs: [], execution_count: null, source: cell.source.replace(CALLS[0], words.call) });
    }
    return notebook;
  }

  // Open the notebook of this folder, making it first where there is none. Whoever asks for it also has it run, if it
  // still is the guided one.
  async function open(app, folder, words, asked) {
    const { contents } = app.serviceManager;
    const path = inside(folder, words.file);
    const there = await contents.get(path, { content: false }).catch((error) => {
      if (is_missing(error)) return null;
      throw error;
    });
    if (!there) await contents.save(path, { type: "notebook", format: "json", content: await guided_notebook(words) });
    asked.add(path);
    await app.commands.execute("docmanager:open", { path, factory: "Notebook" });
  }

  // Whether a notebook holds our code and no other. What its metadata say is no proof.
  function holds_code_of(notebook, shipped) {
    const ours = shipped.cells.filter((cell) => cell.cell_type === "code").map((cell) => cell.source);
    const found = [...notebook.model.cells].filter((cell) => cell.type === "code");
    const same = (cell, index) =>
      CALLS.some((call) => cell.sharedModel.getSource() === ours[index].replace(CALLS[0], call));
    return found.length === ours.length && found.every(same);
  }

  // Python looks for a module beside the notebook first, so a stranger's file there would be run with our code.
  async function holds_no_modules(contents, folder) {
    const { content } = await contents.get(folder);
    const packages = content.filter(({ type, name }) => type === "directory" && /^\w+$/.test(name));
    if (packages.length > 20 || content.some(({ name }) => /\.(py|pyc|so|pyd)$/i.test(name))) return false;
    const held = await Promise.all(packages.map(({ path }) => contents.get(path)));
    return !held.some((one) => one.content.some(({ name }) => name.startsWith("__init__.")));
  }

  // What a kernel runs before the page does. IPython searches the notebook's folder before all packages (`init_path` in
  // IPython/core/shellapp.py), and a compiled module in it is in no listing: `hide_globs` in
  // jupyter_server/services/contents/manager.py.
  const LEAVE_FOLDER = "import sys; sys.path[:] = [path for path in sys.path if path]";

  async function leave_folder(kernel) {
    const { done } = kernel.requestExecute({ code: LEAVE_FOLDER, silent: true, store_history: false });
    return done.then((reply) => reply.content.status === "ok").catch(() => false);
  }

  // Call `run` for each kernel that the notebook gets, and anew after a restart, once messages reach it.
  function for_each_kernel(context, run) {
    let due = false;
    let known = null;
    const look = (_sender, status) => {
      const kernel = context.session?.kernel;
      if ((kernel && kernel.id !== known) || ["restarting", "autorestarting"].includes(status)) due = true;
      // Restarted by another client, it says no more than this, and JupyterLab never hears that it is idle.
      if (status === "starting" && kernel?.id === known) kernel.requestKernelInfo().then(() => run(), () => {});
      known = kernel?.id ?? null;
      if (!due || context.isRestarting || kernel?.connectionStatus !== "connected" || kernel.status !== "idle") return;
      due = false;
      setTimeout(run); // first the others hear of the kernel: ipywidgets must listen when the wizard is made
    };
    for (const signal of [context.statusChanged, context.connectionStatusChanged, context.kernelChanged])
      signal.connect(look);
    look();
  }

  const ready = (context) =>
    new Promise((done) => {
      for_each_kernel(context, done);
    });

  // The guided notebook as a page. It is a view: the file stays as it was, so there is nothing to save.
  class Page {
    constructor(panel, lab) {
      Object.assign(this, { panel, lab, shown: false });
      this.starting = document.createElement("div");
      Object.assign(this.starting, { className: "ptsa-starting", textContent: lab.words.starting });
      this.starting.setAttribute("role", "status");
      panel.context.model.stateChanged.connect((model, { name, newValue }) => {
        if (this.shown && name === "dirty" && newValue) model.dirty = false;
      });
      panel.node.addEventListener("keydown", (event) => this.keep(event));
      this.show(true);
      panel.node.append(this.starting);
      for_each_kernel(panel.sessionContext, () => this.run());
    }

    show(shown) {
      this.shown = shown;
      this.panel.toggleClass("ptsa-page", shown);
      this.panel.toolbar.setHidden(shown);
      this.starting.remove();
      this.lab.changed();
    }

    // A letter is no command of the notebook, where `d d` would delete the cell that is the page.
    keep(event) {
      const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (this.shown && (plain || event.key === "Enter")) event.stopPropagation();
    }

    async run() {
      const { content, sessionContext } = this.panel;
      if (!this.shown || this.panel.isDisposed || !holds_code_of(content, await this.lab.setup)) return;
      const alone = await leave_folder(sessionContext.session.kernel);
      const went_well = alone && (await this.lab.run_all(content, sessionContext));
      if (!went_well && this.shown) this.show(false); // the instructions say what to do
      this.starting.remove();
    }
  }

  // The gallery runs by itself and stays a notebook to be read; there is nothing to save.
  async function run_gallery({ content, context, sessionContext }, lab) {
    await ready(sessionContext);
    if (!holds_code_of(content, await lab.gallery)) return;
    if (!(await leave_folder(sessionContext.session.kernel))) return;
    await lab.run_all(content, sessionContext);
    context.model.dirty = false;
  }

  // Show each guided notebook as a page, and give the command that shows it as a notebook again.
  function show_pages(app, lab, tracker, asked) {
    const pages = new WeakMap();
    const current = () => pages.get(tracker.currentWidget);
    const adopt = async (panel) => {
      await panel.context.ready;
      const { path } = panel.context;
      const is_page = holds_code_of(panel.content, await lab.setup);
      if (panel.isDisposed || !(is_page || holds_code_of(panel.content, await lab.gallery))) return;
      const trusted = asked.delete(path) || (lab.serves && !folder_of(path));
      if (!trusted && !(await holds_no_modules(app.serviceManager.contents, folder_of(path)))) return;
      if (!is_page) return run_gallery(panel, lab);
      pages.set(panel, new Page(panel, lab));
      lab.changed();
      if (path === decodeURIComponent(lab.option("treePath"))) app.restored.then(() => app.shell.collapseLeft?.());
    };
    const adopt_quietly = (panel) => adopt(panel).catch((error) => console.warn(PACKAGE, error));
    tracker.widgetAdded.connect((_tracker, panel) => void adopt_quietly(panel));
    tracker.forEach((panel) => void adopt_quietly(panel));
    app.commands.addCommand(CODE, {
      label: lab.words.code,
      isVisible: () => Boolean(current()),
      isEnabled: () => Boolean(current()),
      isToggled: () => current()?.shown === false,
      execute: () => current()?.show(!current().shown),
    });
    if (lab.option("mode") === "single-document") stand_alone(app, lab, tracker, () => pages.get(app.shell.currentWidget)?.shown);
    return pages;
  }

  // At an address of one document, the page is all that is seen: an app. With another document everything is back.
  function stand_alone(app, lab, tracker, is_page) {
    const { shell } = app;
    let hidden = [];
    const side_bars = () => ["left", "right"].filter((side) => shell.isSideTabBarVisible?.(side));
    let closed = [];
    const draw = () => {
      const alone = Boolean(is_page());
      if (alone) {
        for (const part of shell.layout?.widgets ?? [])
          if (!part.isHidden && part.id !== "jp-main-content-panel") part.hide(), hidden.push(part);
        for (const side of side_bars()) shell.toggleSideTabBarVisibility(side), closed.push(side);
        // Each collapse counts as another change of the layout, of one that is closed as well, and that calls this again.
        if (!shell.leftCollapsed) shell.collapseLeft?.();
        if (!shell.rightCollapsed) shell.collapseRight?.();
        document.title = lab.words.label;
      } else if (hidden.length) {
        for (const part of hidden) part.show();
        for (const side of closed) shell.toggleSideTabBarVisibility(side);
        [hidden, closed] = [[], []];
      }
    };
    lab.changed = draw;
    shell.currentChanged?.connect(draw);
    shell.layoutModified?.connect(draw);
    const title = document.querySelector("title");
    const renamed = () => is_page() && document.title !== lab.words.label && (document.title = lab.words.label);
    new MutationObserver(renamed).observe(title, { childList: true });
    // There are no tabs here: the browser's Back leads from a notebook that was opened back to the page.
    window.addEventListener("popstate", () => {
      const path = decodeURIComponent(window.location.pathname.split("/tree/")[1] ?? "");
      const panel = tracker.find(({ context }) => context.path === path);
      if (panel) shell.activateById(panel.id);
    });
    app.restored.then(draw);
  }

  // The wizard's own page asks for a notebook: saved beside the guided one, opened on its kernel, and run.
  async function open_first_notebook(app, lab, folder, { name, notebook, kernel }) {
    const path = await save_beside(app.serviceManager.contents, folder, name, notebook);
    await app.serviceManager.kernelspecs.refreshSpecs(); // the kernel may be a minute old
    const named = kernel ? { kernel: { name: kernel } } : {};
    const panel = await app.commands.execute("docmanager:open", { path, factory: "Notebook", ...named });
    if (!panel?.sessionContext) return; // Notebook 7 opens a page of its own
    await panel.context.ready;
    await ready(panel.sessionContext);
    const { id } = panel.sessionContext.session.kernel;
    if (lab.ran.get(path) === id) return; // asked for again, or by a double click: what was computed there stays
    lab.ran.set(path, id);
    await lab.run_all(panel.content, panel.sessionContext);
    await panel.context.save(); // with its results, so that closing it asks nothing
  }

  // Save a notebook under its name, or under the next free one; one that holds the same is used again.
  async function save_beside(contents, folder, name, notebook) {
    const held = ({ cells, metadata }) =>
      JSON.stringify([metadata.kernelspec?.name, cells.map((cell) => [cell.cell_type, text_of(cell.source)])]);
    const taken = new Set((await contents.get(folder)).content.map((file) => file.name));
    for (let number = 1; ; number += 1) {
      const path = inside(folder, number > 1 ? name.replace(/\.ipynb$/, `-${number}.ipynb`) : name);
      if (!taken.has(path.slice(path.lastIndexOf("/") + 1))) {
        await contents.save(path, { type: "notebook", format: "json", content: notebook });
        return path;
      }
      const there = await contents.get(path, { type: "notebook", content: true }).catch(() => null);
      if (there && held(there.content) === held(notebook)) return path;
    }
  }

  // The path that the server calls a file by; null outside of its folder, whose home is abbreviated:
  // `server_root_dir` in jupyter_server/serverapp.py.
  function path_on_server(file, root) {
    const [path, folder] = [file, root].map((one) => one.replaceAll("\\", "/").replace(/\/+$/, ""));
    const start = folder.startsWith("~") ? path.indexOf(`${folder.slice(1)}/`) : 0;
    const length = folder.startsWith("~") ? start + folder.length - 1 : folder.length;
    return start >= 0 && path.startsWith(`${folder.replace(/^~/, "")}/`, start) ? path.slice(length + 1) : null;
  }

  // An event that is prevented here was taken; the wizard does it another way where nobody takes it.
  function listen(app, lab, tracker) {
    document.addEventListener("ptsa-open-notebook", (event) => {
      const { name, notebook } = event.detail ?? {};
      if (!/^[^/\\]+\.ipynb$/.test(name) || !Array.isArray(notebook?.cells)) return;
      event.preventDefault();
      const panel = tracker.find((one) => one.node.contains(event.target)) ?? tracker.currentWidget;
      const folder = folder_of(panel?.context.path ?? "");
      open_first_notebook(app, lab, folder, event.detail).catch((error) => lab.show_error(lab.words.unopened, error));
    });
    document.addEventListener("ptsa-open-file", (event) => {
      const path = path_on_server(String(event.detail?.path ?? ""), lab.option("serverRoot"));
      const command = "filebrowser:go-to-path";
      if (path === null || lab.option("mode") === "single-document" || !app.commands.hasCommand(command)) return;
      event.preventDefault();
      void app.commands.execute(command, { path });
    });
  }

  function activate({ LabIcon, lab }, app, given) {
    const { launcher, palette, translator, browser, menu, tracker, rendermime } = given;
    const words = translator?.languageCode?.startsWith("zh") ? WORDS.zh : WORDS.en;
    const asked = new Set(); // the paths whose notebook is run because somebody pressed the tile
    lab.words = words;
    lab.language = words === WORDS.zh ? "zh_CN" : "";
    lab.icon = new LabIcon({ name: COMMAND, svgstr: ICON });
    app.commands.addCommand(COMMAND, {
      label: words.label,
      caption: words.caption,
      icon: (args) => (args.isPalette ? undefined : lab.icon),
      execute: ({ cwd }) =>
        open(app, cwd ?? browser?.model.path ?? "", words, asked).catch((error) => lab.show_error(words.failed, error)),
    });
    const kernelIconUrl = `data:image/svg+xml,${encodeURIComponent(ICON)}`; // what tiles among the notebooks show
    launcher?.add({ command: COMMAND, category: "Notebook", rank: 100, kernelIconUrl });
    palette?.addItem({ command: COMMAND, category: "Notebook", args: { isPalette: true } });
    menu?.fileMenu.newMenu.addGroup([{ command: COMMAND }], 50);
    if (!tracker) return;
    document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
    document.body.dataset.labLanguage = translator?.languageCode ?? ""; // by which the wizard offers the other one
    show_pages(app, lab, tracker, asked);
    listen(app, lab, tracker);
    if (rendermime)
      import(new URL("cells.js", HERE))
        .then(({ ask_about_cells }) => ask_about_cells(app, lab, given, shared))
        .catch((error) => console.warn(PACKAGE, error));
    palette?.addItem({ command: CODE, category: "Notebook" });
    menu?.viewMenu.addGroup([{ command: CODE }], 50);
  }

  async function extension() {
    const names = ["launcher", "apputils", "translation", "filebrowser", "mainmenu", "ui-components", "notebook", "coreutils", "rendermime"];
    const [launcher, apputils, translation, files, menu, ui, notebook, core, mime] = await Promise.all(
      names.map((name) => shared(`@jupyterlab/${name}`)),
    );
    const option = (name) => core.PageConfig.getOption(name);
    const lab = {
      option,
      serves: option("torchSetupAssistant") === "serves", // by `assistant lab`, the user's own folder
      setup: shipped_notebook("setup.ipynb"),
      gallery: shipped_notebook("gallery.ipynb"),
      // Not `runAll`, which scrolls to the end: reading begins at the top.
      run_all: (content, context) => notebook.NotebookActions.runCells(content, content.widgets, context),
      show_error: apputils.showErrorMessage,
      leave_folder,
      changed: () => {},
      ran: new Map(), // by the path of a notebook: the kernel that has run it
    };
    for (const notebook of [lab.setup, lab.gallery]) notebook.catch(() => {}); // told where it is awaited
    const tokens = {
      launcher: launcher?.ILauncher,
      palette: apputils.ICommandPalette,
      translator: translation?.ITranslator,
      browser: files?.IDefaultFileBrowser,
      menu: menu?.IMainMenu,
      tracker: notebook?.INotebookTracker,
      rendermime: mime?.IRenderMimeRegistry,
    };
    const present = Object.keys(tokens).filter((name) => tokens[name]);
    const plugin = {
      id: `${PACKAGE}:plugin`,
      description: "Opens the guided setup of PyTorch, and shows it as a page.",
      autoStart: true,
      optional: present.map((name) => tokens[name]),
      activate: (app, ...given) =>
        activate({ LabIcon: ui.LabIcon, lab }, app, Object.fromEntries(present.map((name, at) => [name, given[at]]))),
    };
    return { __esModule: true, default: plugin };
  }

  window._JUPYTERLAB = window._JUPYTERLAB ?? {};
  window._JUPYTERLAB[PACKAGE] = {
    init: (given) => void (scope = given),
    get: async () => {
      const made = await extension();
      return () => made;
    },
  };
})();
