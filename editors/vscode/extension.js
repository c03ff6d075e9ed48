// Starts `relay lsp` for .relay files.
"use strict";
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client, options;

async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("relay").get("command");
  const settings = {
    documentSelector: [{ language: "relay" }],
    initializationOptions: vscode.workspace.getConfiguration("relay"),
    synchronize: { configurationSection: "relay" },
    middleware: {
      // the log shows what the lenses' commands print
      executeCommand: (name, given, next) => {
        client.outputChannel.show(true);
        return next(name, given);
      },
    },
  };
  client = new LanguageClient("relay", "Relay", { command, args, options }, settings);
  try {
    await client.start();
  } catch (problem) {
    const why = (problem && problem.message) || problem || "no such program";
    vscode.window.showErrorMessage(`Relay: \`${command}\` cannot be started (${why}). pip install 'relaylang[lsp]', or set relay.command.`);
  }
}

exports.activate = async (context) => {
  // The server starts in the extension's own folder: nothing of the workspace is run or imported.
  options = { cwd: context.extensionPath, env: { ...process.env, PYTHONSAFEPATH: "1" } };
  context.subscriptions.push(
    vscode.commands.registerCommand("relay.restart", async () => {
      if (client) await client.stop().catch(() => {});
      await start();
    })
  );
  await start();
};

exports.deactivate = () => (client ? client.stop() : undefined);
