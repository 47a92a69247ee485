// Is everything fine? One answer for the whole box, in the header of every page.

import styles from './Verdict.module.css'

import { UNKNOWN, verdictOf } from '../figures/health'
import { hashOf } from './route'
import type { BoxState } from '../api/types'
import { HealthIcon } from '../ui/icons'

/** `isLost`: the connection to the box is, so nobody knows how it is now. */
export function Verdict({ state, isLost }: { state: BoxState; isLost: boolean }) {
  const { health, text, camera } = isLost ? UNKNOWN : verdictOf(state)
  const name = camera !== null && text.startsWith(`${camera}: `) ? `${camera}:` : ''
  const words = <><HealthIcon health={health} /> <span class={styles.words}>{name && <span class={styles.name}>{name}</span>} <span>{text.slice(name.length).trimStart()}</span></span></>
  return (
    <p class={`live-data health-${health} ${styles.verdict}`} data-testid="box-state" data-ready={state.box.ready} data-health={health} title={text}>
      {camera === null ? words : <a href={hashOf({ page: 'camera', camera })}>{words}</a>}
    </p>
  )
}
