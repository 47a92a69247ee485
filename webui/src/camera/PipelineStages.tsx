// The pipeline of a camera, and what came of the crops that its later stages were given.

import styles from './PipelineStages.module.css'

import { dropLines } from '../figures/counts'
import { Meanings } from '../figures/DropReasons'
import { count, plural } from '../ui/format'
import { stageText } from '../live/stages'
import type { Camera } from '../api/types'

export type CameraPipeline = NonNullable<Camera['pipeline']>

export function PipelineStages({ name, partial, stages }: CameraPipeline) {
  const later = stages.filter(({ after }) => after.length > 0)
  return (
    <section class={styles.pipeline} data-testid="pipeline">
      <p><span class="muted">Pipeline</span> {name} <span class="muted">({stages.map(stageText).join('; ')})</span></p>
      {later.length > 0 && (
        <table aria-label="Objects by stage, since the box started">
          <thead>
            <tr>
              <th scope="col">Objects</th>
              <th scope="col">answered</th>
              <th scope="col" title="Not asked about again: the stage knew their track">known</th>
              <th scope="col">dropped</th>
            </tr>
          </thead>
          <tbody>
            {later.map((stage) => (
              <tr key={stage.name} data-stage={stage.name}>
                <th scope="row">{stage.name}</th>
                <td>{count(stage.answered)}</td>
                <td>{count(stage.remembered)}</td>
                <td title={reasons(stage.dropped)}>{count(total(stage.dropped))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Meanings lines={later.flatMap(({ name, dropped }) => dropLines(dropped).map((line) => ({ ...line, key: `${name}: ${count(line.amount)} ${line.reason}` })))} />
      {partial > 0 && <p class="muted">{plural(partial, 'answer')} lacked a stage for some object.</p>}
    </section>
  )
}

type Dropped = CameraPipeline['stages'][number]['dropped']

function total(dropped: Dropped): number {
  return Object.values(dropped).reduce((all, each) => all + each, 0)
}

function reasons(dropped: Dropped): string {
  return dropLines(dropped).map(({ reason, amount, meaning }) => `${count(amount)} ${reason}: ${meaning}`).join('\n')
}
