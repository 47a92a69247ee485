// What a camera's cascade does: the share of pictures that its large model sees, the threshold, what it saves.

import styles from './PipelineStages.module.css'

import { count, percent } from '../ui/format'
import type { Camera } from '../api/types'

export type CameraCascade = NonNullable<Camera['cascade']>

export function Cascade(cascade: CameraCascade) {
  const { name, small, large, continues, threshold, planned, share, expected_share, expected_agreement, saving, compared, kept, sent_on, missed } = cascade
  return (
    <section class={styles.pipeline} data-testid="cascade">
      <p><span class="muted">{continues ? 'Early exit' : 'Cascade'}</span> {name} <span class="muted">({small}, then {large} where it is unsure)</span></p>
      <table aria-label="Cascade, since the box started">
        <tbody>
          {continues && (
            <tr title="Pictures whose answer is the exit's, so the second part of the network does not run">
              <th scope="row">end at the exit</th><td>{share === null ? percent(null) : percent(1 - share)}</td>
            </tr>
          )}
          <tr title={`${count(sent_on + missed)} of ${count(kept + sent_on + missed)} pictures; this threshold sends on ${percent(expected_share)} of the last ones`}>
            <th scope="row">sent on</th><td>{percent(share)}</td>
          </tr>
          <tr title={`Pictures whose expected loss (1 - F1 against the large model) is greater are sent on${planned ? '; the plan chooses the threshold by the time that executors have left' : ''}`}>
            <th scope="row">threshold</th><td>{threshold.toFixed(3)}{planned && ', as planned'}</td>
          </tr>
          <tr title="F1 of all answers against the large model's, to expect of the last pictures">
            <th scope="row">expected agreement</th><td>{percent(expected_agreement)}</td>
          </tr>
          {compared && (
            <tr title={`1 - F1 of the small model against the large one, on the last ${count(compared.pictures)} pictures that both have answered`}>
              <th scope="row">loss of the small model</th><td>{compared.measured_loss.toFixed(3)}, {compared.expected_loss.toFixed(3)} expected</td>
            </tr>
          )}
          <tr title={`Of the execution time of ${continues ? 'both parts of the network' : 'the large model alone'}`}>
            <th scope="row">saves</th><td>{saving === null || saving > 0 ? percent(saving) : 'nothing'}</td>
          </tr>
          <tr title="The small model's answers stand, because the large one could not have answered in time">
            <th scope="row">too late for the large model</th><td>{count(missed)}</td>
          </tr>
        </tbody>
      </table>
    </section>
  )
}
