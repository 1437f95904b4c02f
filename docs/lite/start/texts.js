// The start page's words; the titles of labs and lessons are in contents.js, which the build writes.

export const TEXTS = {
  en: {
    title: "PyTorch setup assistant in the browser",
    language: "Language",
    lead:
      "Which PyTorch fits a machine, and why: to try out and to learn. Python runs inside these pages. Nothing is installed, nothing is sent anywhere, and the internet is not needed.",
    try: "Try out",
    setup: "Guided setup",
    setupWhat:
      "The wizard on a recorded machine: what it found, what to install and why. Choose another machine, or change one fact.",
    gallery: "Gallery",
    galleryWhat: "Every recorded machine as a card: filter them, compare them, make setup packages.",
    onnx: "ONNX models",
    onnxWhat: "Drop a model, and see what runs where. It stays on this machine.",
    lessons: "Lessons",
    lessonsWhat:
      "Each with exercises, solutions and a glossary. Lines that ask the assistant can be changed and run in the page. What computes with torch or installs something needs a terminal.",
    labs: "Labs: break it, look, fix it",
    labsWhat:
      "{here} of the {all} labs can be played here. The others install packages or compute with torch or NumPy, which a browser cannot: play them in JupyterLab on a computer.",
    minutes: "About {count} minutes",
    allLabs: "How labs are played, and which there are",
    patience: "On the first visit Python takes some seconds to start.",
    tutorial: "To set up PyTorch on a real machine",
    docs: "Documentation",
  },
  zh_CN: {
    title: "浏览器里的 PyTorch 安装助手",
    language: "语言",
    lead:
      "哪个 PyTorch 适合一台机器，以及为什么：可以试用，也可以学习。Python 在这些页面里运行。不安装任何内容，不向任何地方发送内容，也不需要互联网。",
    try: "试用",
    setup: "引导安装",
    setupWhat: "在一台录制的机器上使用向导：检测到了什么、该安装什么、为什么。可以换一台机器，或改变一项事实。",
    gallery: "机器图库",
    galleryWhat: "每台录制的机器一张卡片：可以筛选、比较，并制作安装包。",
    onnx: "ONNX 模型",
    onnxWhat: "拖入一个模型，看看哪些部分在哪里运行。模型不会离开这台机器。",
    lessons: "课程",
    lessonsWhat:
      "每课都有练习、解答和术语表。向助手提问的命令行可以在页面里修改并运行。用 torch 计算或要安装内容的部分需要终端。",
    labs: "实验：弄坏它，观察，修好它",
    labsWhat:
      "{all} 个实验中有 {here} 个可以在这里做。其余的要安装软件包，或用 torch 或 NumPy 计算，浏览器做不到：请在电脑上的 JupyterLab 里做。",
    minutes: "约 {count} 分钟",
    allLabs: "怎样做实验，以及有哪些实验",
    patience: "首次访问时，Python 需要几秒钟启动。",
    tutorial: "在真实机器上安装 PyTorch",
    docs: "文档",
  },
};
