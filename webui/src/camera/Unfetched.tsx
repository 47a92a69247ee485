// A camera that the box fetches and has no picture of: why, and what helps.

import styles from './Camera.module.css'

import { Remedies } from '../figures/Remedies'
import { capitalised } from '../ui/format'
import type { Source } from '../api/types'

export function Unfetched({ source }: { source: Source }) {
  return (
    <section class={`card health-lost ${styles.unfetched}`} aria-label="Why there are no pictures" data-testid="unfetched">
      <p class={styles.health}>{capitalised(source.text)}</p>
      <Remedies camera={source.camera} remedies={source.remedies} lead="What you can do: " />
    </section>
  )
}
