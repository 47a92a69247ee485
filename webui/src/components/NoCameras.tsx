// What to do first: shown until a camera has connected.

import { useState } from 'preact/hooks'

export function NoCameras({ ready }: { ready: boolean }) {
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws'
  const command = `edgebox camera scene: --server ${scheme}://${location.host}`
  return (
    <section class="empty" aria-labelledby="empty-title" data-testid="empty">
      <h2 id="empty-title">No camera yet</h2>
      <p>
        {ready
          ? 'The box is ready. Start a first camera, a synthetic street scene, on this machine or any other that reaches it:'
          : 'The box is getting ready. Meanwhile, this starts a first camera, a synthetic street scene; it connects by itself:'}
      </p>
      <Command text={command} />
      <p class="muted">It shows up here within a second, with its frames, its link and what the box decides for it.</p>
    </section>
  )
}

function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      // Not allowed here; a click on the command selects it whole.
      return
    }
    setCopied(true)
    window.setTimeout(() => setCopied(false), 2000)
  }
  return (
    <div class="command">
      <code>{text}</code>
      {/* Browsers offer the clipboard to secure pages and to localhost only. */}
      {window.isSecureContext && (
        <button type="button" onClick={() => void copy()}>
          <span aria-live="polite">{copied ? 'Copied' : 'Copy'}</span>
        </button>
      )}
    </div>
  )
}
