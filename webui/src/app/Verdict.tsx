// Is everything fine? One answer for the whole box, in the header of every page.

import styles from './Verdict.module.css'

import { verdictOf } from '../figures/health'
import { hashOf } from './route'
import type { BoxState } from '../api/types'
import { HealthIcon } from '../ui/icons'

export function Verdict({ state }: { state: BoxState }) {
  const { health, text, camera } = verdictOf(state)
  const name = camera !== null && text.startsWith(`${camera}: `) ? `${camera}:` : ''
  const words = <><HealthIcon health={health} /> <span class={styles.words}>{name && <span class={styles.name}>{name}</span>} <span>{text.slice(name.length).trimStart()}</span></span></>
  return (
    <p class={`live-data health-${health} ${styles.verdict}`} data-testid="box-state" data-ready={state.box.ready} data-health={health} title={text}>
      {camera === null ? words : <a href={hashOf({ page: 'camera', camera })}>{words}</a>}
    </p>
  )
}
