// Pages from a disk may start no workers. This one runs the worker of the search in a hidden frame instead.
window.IFrameWorker = class extends EventTarget {
  constructor(url) {
    super();
    const frame = document.body.appendChild(document.createElement("iframe"));
    frame.hidden = true;
    const inside = frame.contentWindow;
    const script = inside.document.createElement("script");
    inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    const send = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    const waiting = [];
    this.postMessage = (data) => waiting.push(data);
    script.onload = () => {
      this.postMessage = send;
      waiting.forEach(send);
    };
    script.src = url;
    inside.document.body.appendChild(script);
  }
};
if (location.protocol === "file:") window.Worker = window.IFrameWorker;
