// Says, as long as it is so, that no model of the box is for real cameras, and what helps.

import styles from './SyntheticHint.module.css'

import type { BoxState } from '../api/types'
import { Command } from '../ui/Command'

/** One line under the header, which opens to the command; nothing where a real model is installed. */
export function SyntheticHint({ state }: { state: BoxState | null }) {
  if (!state?.box.only_synthetic) return null
  return (
    <aside class={styles.hint} aria-label="About the model" data-testid="synthetic">
      <p>The model <strong>{state.box.family}</strong> was trained on synthetic drawings and is not for real cameras.</p>
      <details>
        <summary>Get a real one</summary>
        <p>Run this on the box:</p>
        <Command text="edgebox models get deimv2-atto --default" class={styles.command} />
      </details>
    </aside>
  )
}

/** The same in two words, for a camera's tile. */
export function SyntheticMark() {
  return <span class={styles.mark} title="The model was trained on synthetic drawings and is not for real cameras. On the box: edgebox models get">demo model</span>
}
