// The counts, and the proof that they add up.

import styles from './CountsLine.module.css'

import { checkCounts } from './counts'
import { count } from '../ui/format'
import type { Counts } from '../api/types'
import { CheckIcon, CrossIcon } from '../ui/icons'

export function CountsLine({ counts }: { counts: Counts }) {
  const { dropped, unaccounted } = checkCounts(counts)
  return (
    <p class={styles.counts} data-testid="counts" data-unaccounted={unaccounted}>
      <span>{count(counts.captured)} captured</span>
      <span>= {count(counts.on_time)} on time</span>
      <span>+ {count(counts.late)} late</span>
      <span>+ {count(dropped)} dropped</span>
      <span>+ {count(counts.pending)} pending</span>
      {unaccounted === 0 ? (
        <span class={styles.addsUp}><CheckIcon /> adds up</span>
      ) : (
        <span class={styles.off}><CrossIcon /> off by {count(Math.abs(unaccounted))}</span>
      )}
      {counts.utility > counts.on_time && (
        <span title="Answers on time count 1, later ones the utility that their camera gives them">
          utility {count(counts.utility)}
        </span>
      )}
      {counts.mismatches > 0 && (
        <span title="Answered by another variant than the camera had been advised of when it sent them: it sent a smaller picture, or there was too little time left">
          {count(counts.mismatches)} not as advised
        </span>
      )}
    </p>
  )
}
