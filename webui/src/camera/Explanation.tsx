// What the planner considers for a camera: each size with what it needs, what there is, and the verdict.

import styles from './Explanation.module.css'

import { useState } from 'preact/hooks'

import { classes } from '../ui/classes'
import type { Answers, ExplainedOption } from '../api/api-types'
import { bitrate, milliseconds, UNKNOWN } from '../ui/format'
import { Accuracy } from '../models/Accuracy'
import { worth } from '../figures/limits'
import { Reason } from '../figures/Reason'
import { Remedies } from '../figures/Remedies'
import { usePolled } from '../api/polling'

export type Option = ExplainedOption
type Verdict = Option['verdict']
type Answer = Pick<Answers['GET /v1/cameras/{id}/explanation'], 'bandwidth_bps' | 'options'>

const PERIOD_MS = 3_000
const WORD: Readonly<Record<Verdict, string>> = {
  chosen: 'chosen',
  smaller: 'smaller',
  contended: 'no time',
  infeasible: 'out of reach',
  not_yet: 'not yet',
  inaccurate: 'not wanted',
  no_gain: 'no gain',
  exceeds_source: 'not needed',
  exceeds_stage: 'not allowed',
}

interface ExplanationProps {
  camera: string
  connected: boolean
  /** Whether the box fetches its pictures: no uplink limits them. */
  fetched: boolean
}

export function Explanation({ camera, connected, fetched }: ExplanationProps) {
  const { answer, error } = usePolled('GET /v1/cameras/{id}/explanation', connected ? { path: { id: camera } } : null, PERIOD_MS)
  return (
    <section class={`${styles.card} card`} aria-labelledby="explanation-title" data-testid="explanation">
      <h2>
        <span id="explanation-title">What the planner considers</span>{' '}
        {answer && connected && !fetched && <span class="muted">uplink now {answer.bandwidth_bps === null ? 'not measured yet' : bitrate(answer.bandwidth_bps)}</span>}
      </h2>
      {!connected && <p class="muted">Nothing while it is not connected.</p>}
      {connected && error && <p role="status" class="muted">{error.message}</p>}
      {connected && answer && (answer.options.length > 0 ? <Options {...answer} camera={camera} fetched={fetched} /> : <p class="muted">Nothing at the moment.</p>)}
    </section>
  )
}

/** Sizes shown at first: the chosen one and its neighbours. */
const NEAR = 6

/** The options around the chosen one, always as many. */
export function around(options: readonly Option[], amount: number): readonly Option[] {
  const chosen = Math.max(0, options.findIndex(({ verdict }) => verdict === 'chosen'))
  const from = Math.max(0, Math.min(chosen - Math.floor((amount - 1) / 2), options.length - amount))
  return options.slice(from, from + amount)
}

type OptionsProps = Answer & Pick<ExplanationProps, 'camera' | 'fetched'>

function Options({ options, ...rest }: OptionsProps) {
  const [showsAll, setShowsAll] = useState(false)
  const shown = showsAll ? options : around(options, NEAR)
  return (
    <>
      <OptionTable {...rest} options={shown} />
      <p class="muted">A size is that of the picture as it is sent: in the camera’s own shape, no larger than the model’s input.</p>
      {options.length > NEAR && (
        <button type="button" class="quiet" aria-expanded={showsAll} onClick={() => setShowsAll(!showsAll)}>
          {showsAll ? 'Show those around it' : `Show all ${options.length} sizes`}
        </button>
      )}
    </>
  )
}

function OptionTable({ camera, fetched, bandwidth_bps, options }: OptionsProps) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Size</th>
          <th scope="col" class="figure">Accuracy</th>
          {!fetched && <th scope="col" class="figure">Uplink needed</th>}
          <th scope="col" class="figure"><abbr title="The time of one batch in front of it and of its own batch, in 99 of 100 cases; more before a camera is raised to it">Time needed</abbr></th>
          <th scope="col" class="figure"><abbr title="The part of the deadline that is left after sending the picture; below 0 where sending alone takes longer than the deadline">Time left</abbr></th>
          <th scope="col">Verdict</th>
        </tr>
      </thead>
      <tbody>
        {[...options].reverse().map((option) => (
          <tr key={option.variant} class={styles[option.verdict]} data-variant={option.variant} data-verdict={option.verdict}>
            <th scope="row">{option.variant} <span class="muted">{option.width_px} × {option.height_px}</span></th>
            <td class={classes('figure', styles.accuracy)}><Accuracy of={option} digits={2} /></td>
            {!fetched && <td class={classes('figure', styles.uplink, lacks(option.needed_bps, bandwidth_bps) && styles.lacking)}>{option.needed_bps === null ? UNKNOWN : bitrate(option.needed_bps)}</td>}
            <td class={classes('figure', option.needed_ms > option.left_ms && styles.lacking)}>{milliseconds(option.needed_ms)}</td>
            <td class={classes('figure', styles.left)}>{milliseconds(option.left_ms)}</td>
            <td class={styles.why}><div><strong>{WORD[option.verdict]}</strong> <span><Reason text={option.why} /></span>{option.remedies.length > 0 && <small class={styles.lift} title={option.limit ? worth(option.limit) : undefined}><Remedies camera={camera} remedies={option.remedies} lead="To get it: " /></small>}</div></td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function lacks(needed_bps: number | null, bandwidth_bps: number | null): boolean {
  return needed_bps !== null && bandwidth_bps !== null && needed_bps > bandwidth_bps
}
