// What a lesson's page says of itself in a browser; what its lines print comes from Python.

export const TEXTS = {
  en: {
    about: "In this page the lines that ask the assistant can be changed and run: open “Try it here” below them. The other lines need a terminal, and the labs need JupyterLab on a computer, except those on the ",
    start: "start page",
    end: ".",
    fold: "Try it here",
    line: "Line",
    run: "Run",
    starting: "Python is starting in this page …",
    running: "Running …",
    nothing: "It prints nothing.",
    broken: "Python could not start: {reason}. Load the page again.",
  },
  zh_CN: {
    about: "在这个页面里，向助手提问的命令行可以修改并运行：请打开其下方的“在这里试试”。其他命令行需要终端；实验需要电脑上的 JupyterLab，但列在",
    start: "起始页",
    end: "上的除外。",
    fold: "在这里试试",
    line: "命令行",
    run: "运行",
    starting: "Python 正在这个页面里启动……",
    running: "正在运行……",
    nothing: "没有输出。",
    broken: "Python 无法启动：{reason}。请重新加载页面。",
  },
};
