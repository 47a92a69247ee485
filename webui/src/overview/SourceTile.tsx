// A camera that the box fetches and has not had a picture of so far: why, and what helps.

import styles from './CameraTile.module.css'

import { HEALTH_WORD } from '../figures/health'
import { hashOf } from '../app/route'
import { HealthIcon } from '../ui/icons'
import { Remedies } from '../figures/Remedies'
import { capitalised } from '../ui/format'
import type { Source } from '../api/types'

export function SourceTile({ source }: { source: Source }) {
  return (
    <article class={`card health-lost ${styles.tile}`} data-testid="source-tile" data-camera={source.camera} aria-label={`Camera ${source.camera}, ${HEALTH_WORD.lost}`}>
      <div class={styles.unseen}>
        <p>{capitalised(source.text)}</p>
        <p class="muted">{source.address}</p>
      </div>
      <header>
        <span class={styles.health}><HealthIcon health="lost" /></span>
        <h2><a href={hashOf({ page: 'camera', camera: source.camera })}>{source.camera}</a></h2>
        <p class={styles.troubled}>{HEALTH_WORD.lost}</p>
      </header>
      <div class={styles.why}><Remedies camera={source.camera} remedies={source.remedies} lead="To do: " /></div>
    </article>
  )
}
