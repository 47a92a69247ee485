// The last results that came to this page, as JSON to copy or take home.

import page from './Camera.module.css'
import styles from './Results.module.css'

import { useRef, useState } from 'preact/hooks'

import { copyText, download } from '../ui/download'
import { plural } from '../ui/format'
import { fileName, resultsText, type Result } from './results'
import { DownloadIcon } from '../ui/icons'

export function Results({ camera, results }: { camera: string; results: readonly Result[] }) {
  const [message, setMessage] = useState('')
  const shown = useRef<HTMLPreElement>(null)
  const copy = async () => {
    const done = await copyText(resultsText(camera, results), null)
    setMessage(done ? `Copied ${plural(results.length, 'result')}.` : 'The browser does not let this page copy: download them instead.')
  }
  const save = () => download(new Blob([resultsText(camera, results)], { type: 'application/json' }), fileName(camera, Date.now(), '.json'))
  return (
    <section class={`${styles.results} card`} aria-labelledby="results-title">
      <h2><span id="results-title">Results</span> <span class="muted" data-testid="results-count">{results.length === 0 ? 'none has come to this page so far' : `the last ${results.length} that this page was sent`}</span></h2>
      <div class={`${page.tools} ${styles.tools}`}>
        <button type="button" disabled={results.length === 0} onClick={() => void copy()}>Copy JSON</button>
        <button type="button" disabled={results.length === 0} onClick={save}><DownloadIcon /> Download JSON</button>
        <span role="status" class="muted">{message}</span>
      </div>
      <pre ref={shown} tabIndex={0} aria-label="The newest result" data-testid="result">{results[0] ? JSON.stringify(results[0], null, 1) : 'A result is what the box found in one frame. They show up here while the camera sends.'}</pre>
    </section>
  )
}
