// The journal: take the last minute of decisions home, and replay it.

import styles from './Recorder.module.css'

import { LogInHint } from '../access/LogInHint'
import { useMay } from '../access/session'
import { DownloadIcon } from '../ui/icons'

/** `request`: one that is looked at, to be asked about. */
export function Recorder({ ready, request }: { ready: boolean; request: number | null }) {
  const may = useMay('operator')
  return (
    <section class={`${styles.recorder} card`} aria-labelledby="recorder-title">
      <h2 id="recorder-title">Journal</h2>
      <p>Every decision of the last 60 s: names, sizes and instants, never pictures. It replays exactly, anywhere.</p>
      {!may ? (
        <p><LogInHint scope="operator" to="download it" /></p>
      ) : ready ? (
        <a class={styles.button} href="v1/journal" download data-testid="journal"><DownloadIcon /> Download the journal</a>
      ) : (
        <p class="muted">There is none before the models are ready.</p>
      )}
      <p class={styles.replay}><code>edgebox replay FILE{request === null ? '' : ` --request ${request}`}</code></p>
      <p class="muted">
        {request === null
          ? <>repeats every decision and compares; with <code class={styles.option}>--request</code> or <code class={styles.option}>--camera</code> it prints the story of one.</>
          : 'prints the story of the first request of the chosen batch.'}
      </p>
    </section>
  )
}
