// A launcher tile and a command, "Set up PyTorch", that open the guided notebook. JupyterLab 4 and Notebook 7 load this
// file as it stands: a federated module is an object with `init` and `get`, so nothing needs a bundler or Node.js.
(() => {
  const HERE = document.currentScript.src; // the notebook lies beside this file
  const PACKAGE = "torch-setup-assistant";
  const COMMAND = `${PACKAGE}:open`;
  const WORDS = {
    en: {
      label: "Set up PyTorch",
      caption: "Find the PyTorch that fits this machine, install it, and prove that it computes correctly",
      failed: "The guided notebook could not be created",
      file: "set-up-pytorch.ipynb",
      call: "open_wizard()",
    },
    zh: {
      label: "配置 PyTorch",
      caption: "找到适合这台机器的 PyTorch，安装并验证计算结果",
      failed: "无法创建向导笔记本",
      file: "set-up-pytorch.ipynb",
      call: 'open_wizard(language="zh_CN")',
    },
  };
  // A chip with a check mark; where JupyterLab draws it as an icon, the theme colours it.
  const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">
    <g class="jp-icon3" fill="#1e88e5">
      <path d="M4.5 3h7A1.5 1.5 0 0 1 13 4.5v7a1.5 1.5 0 0 1-1.5 1.5h-7A1.5 1.5 0 0 1 3 11.5v-7A1.5 1.5 0 0 1 4.5 3Zm.2 1.2a.5.5 0 0 0-.5.5v6.6c0 .3.2.5.5.5h6.6a.5.5 0 0 0 .5-.5V4.7a.5.5 0 0 0-.5-.5Z" fill-rule="evenodd"/>
      <path d="M5.2 1h1v2h-1zM9.8 1h1v2h-1zM5.2 13h1v2h-1zM9.8 13h1v2h-1zM1 5.2h2v1H1zM1 9.8h2v1H1zM13 5.2h2v1h-2zM13 9.8h2v1h-2z"/>
      <path d="m7.3 10.6-2.1-2.1.8-.8 1.3 1.3 2.9-2.9.8.8Z"/>
    </g>
  </svg>`;

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

  async function guided_notebook(words) {
    const answer = await fetch(new URL("setup.ipynb", HERE));
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const notebook = await answer.json();
    for (const cell of notebook.cells) {
      if (cell.cell_type !== "code") continue;
      Object.assign(cell, { outputs: [], execution_count: null, source: cell.source.replace("open_wizard()", words.call) });
    }
    return notebook;
  }

  // Open the notebook of this folder, making it first where there is none; run one only that was made just now.
  async function open(app, folder, words) {
    const { contents } = app.serviceManager;
    const path = folder ? `${folder}/${words.file}` : words.file;
    const there = await contents.get(path, { content: false }).catch((error) => {
      if (is_missing(error)) return null;
      throw error;
    });
    if (!there) await contents.save(path, { type: "notebook", format: "json", content: await guided_notebook(words) });
    const panel = await app.commands.execute("docmanager:open", { path, factory: "Notebook" });
    if (there || !panel?.sessionContext) return; // Notebook 7 opens a page of its own
    await panel.context.ready;
    await panel.sessionContext.ready;
    await app.commands.execute("notebook:run-all-cells");
  }

  function activate({ LabIcon, showErrorMessage }, app, launcher, palette, translator, browser, menu) {
    const words = translator?.languageCode?.startsWith("zh") ? WORDS.zh : WORDS.en;
    app.commands.addCommand(COMMAND, {
      label: words.label,
      caption: words.caption,
      icon: (args) => (args.isPalette ? undefined : new LabIcon({ name: COMMAND, svgstr: ICON })),
      execute: ({ cwd }) =>
        open(app, cwd ?? browser?.model.path ?? "", words).catch((error) => showErrorMessage(words.failed, error)),
    });
    const kernelIconUrl = `data:image/svg+xml,${encodeURIComponent(ICON)}`; // what tiles among the notebooks show
    launcher?.add({ command: COMMAND, category: "Notebook", rank: 100, kernelIconUrl });
    palette?.addItem({ command: COMMAND, category: "Notebook", args: { isPalette: true } });
    menu?.fileMenu.newMenu.addGroup([{ command: COMMAND }], 50);
  }

  async function extension() {
    const names = ["launcher", "apputils", "translation", "filebrowser", "mainmenu", "ui-components"];
    const [launcher, apputils, translation, files, menu, ui] = await Promise.all(
      names.map((name) => shared(`@jupyterlab/${name}`)),
    );
    const tools = { LabIcon: ui.LabIcon, showErrorMessage: apputils.showErrorMessage };
    const tokens = [
      launcher?.ILauncher,
      apputils.ICommandPalette,
      translation?.ITranslator,
      files?.IDefaultFileBrowser,
      menu?.IMainMenu,
    ];
    const present = tokens.filter(Boolean);
    const plugin = {
      id: `${PACKAGE}:plugin`,
      description: "Opens the guided setup of PyTorch.",
      autoStart: true,
      optional: present,
      activate: (app, ...given) =>
        activate(tools, app, ...tokens.map((token) => (token ? given[present.indexOf(token)] : null))),
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
