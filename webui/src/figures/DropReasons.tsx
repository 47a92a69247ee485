// What the reasons mean for which frames or objects were dropped: for fingers and keyboards, too, which see no title.

import styles from './DropReasons.module.css'

import { type DropLine, dropLines } from './counts'
import type { ByReason } from '../api/types'

/** The meanings of the reasons of these; nothing if none was dropped. */
export function DropReasons({ dropped }: { dropped: ByReason }) {
  return <Meanings lines={dropLines(dropped).map((line) => ({ ...line, key: line.reason }))} />
}

interface MeaningsProps {
  /** With what stands before each meaning. */
  lines: readonly (DropLine & { key: string })[]
}

export function Meanings({ lines }: MeaningsProps) {
  if (lines.length === 0) return null
  return (
    <details class={styles.meanings} data-testid="drop-reasons">
      <summary>{lines.length === 1 ? 'What this reason means' : 'What these reasons mean'}</summary>
      <dl>{lines.map(({ key, meaning }) => <div key={key}><dt>{key}</dt><dd>{meaning}</dd></div>)}</dl>
    </details>
  )
}
