// One model family: what it is, its variants on a plot and in tables, and measuring it again.

import jobStyles from './JobLine.module.css'
import styles from './FamilyCard.module.css'

import { useId, useState } from 'preact/hooks'

import { plural } from '../ui/format'
import type { Job } from './jobs'
import { executorsOf, type Family, type ModelList } from './families'
import { AccuracyPlot } from './AccuracyPlot'
import { FamilyActions } from './FamilyActions'
import { NotMeasured } from './NotMeasured'
import { Measuring } from './Measuring'
import { ProfileTable } from './ProfileTable'
import { VariantTable } from './VariantTable'

interface FamilyCardProps {
  list: ModelList
  family: Family
  users: ReadonlyMap<string, readonly string[]>
  jobs: readonly Job[]
  busy: Job | null
  admin: boolean
  connected: number
  onStarted: () => void
  /** The list of families is another one now. */
  onChanged: () => void
}

export function FamilyCard({ list, family, users, jobs, busy, admin, connected, onStarted, onChanged }: FamilyCardProps) {
  const id = useId()
  const executors = executorsOf(family)
  const [chosen, setChosen] = useState('')
  const executor = executors.includes(chosen) ? chosen : (executors[0] ?? '')
  const [hovered, setHovered] = useState<string | null>(null)
  const marks = { list, family, executor, users, hovered, onHover: setHovered }
  return (
    <section class={`${styles.family} card`} aria-labelledby={id} data-testid="family" data-family={family.name}>
      <header>
        <h2 id={id}>{family.name}</h2>
        {family.name === list.default && <span class={styles.tag} title="For cameras that name no model">default</span>}
        <p class={styles.description}>{family.description}</p>
        {executors.length > 1 && (
          <label class={styles.executor}>
            Times on{' '}
            <select value={executor} onChange={(event) => setChosen(event.currentTarget.value)}>
              {executors.map((each) => <option key={each}>{each}</option>)}
            </select>
          </label>
        )}
      </header>
      <Facts family={family} />
      <div class={styles.figures}>
        {family.variants.some(({ accuracy_assumed }) => !accuracy_assumed) ? <AccuracyPlot {...marks} /> : <NotMeasured family={family} />}
        <VariantTable {...marks} />
      </div>
      <details class={styles.profiles}>
        <summary>Profile: P50, P90 and P99 by batch{executors.length > 1 ? ` on ${executor}` : ''}</summary>
        <ProfileTable list={list} family={family} executor={executor} />
      </details>
      {admin && <FamilyActions list={list} family={family} busy={busy !== null} onChanged={onChanged} />}
      <Measuring family={family.name} jobs={jobs} busy={busy} admin={admin} connected={connected} onStarted={onStarted} />
    </section>
  )
}

function Facts({ family }: { family: Family }) {
  const { imported, labels } = family
  return (
    <dl class={styles.facts}>
      <div><dt>Task</dt><dd>{TASKS[family.task]}</dd></div>
      <div><dt>Licence</dt><dd data-testid="licence">{family.licence}</dd></div>
      <div>
        <dt>{plural(labels.length, 'label')}</dt>
        <dd>
          {labels.slice(0, LABELS_SHOWN).join(', ')}
          {labels.length > LABELS_SHOWN && (
            <details class={styles.moreLabels}>
              <summary>and {labels.length - LABELS_SHOWN} more</summary>
              {labels.slice(LABELS_SHOWN).join(', ')}
            </details>
          )}
        </dd>
      </div>
      {imported && (
        <div>
          <dt>Imported</dt>
          <dd>
            from {imported.sources.join(', ')}, read as {imported.layout}
            {imported.remarks.length > 0 && (
              <ul class={jobStyles.remarks}>{imported.remarks.map((remark) => <li key={remark}>{remark}</li>)}</ul>
            )}
          </dd>
        </div>
      )}
    </dl>
  )
}

const TASKS = { detect: 'finds objects', classify: 'classifies pictures', embed: 'gives embeddings' } as const

const LABELS_SHOWN = 8
