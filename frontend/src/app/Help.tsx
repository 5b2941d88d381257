import { Dialog } from "../ui/Dialog";

const KEYS: [string, string][] = [
  ["/", "write a filter"],
  ["j, k", "next and previous job of a list"],
  ["x", "select the job, or not"],
  ["Enter", "open it"],
  ["p", "pause, or go on"],
  ["Esc", "give a selection up, close a dialog"],
  ["?", "this list"],
];

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl className="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className="dialog-buttons">
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
