// Measuring a family again on this machine, where the box allows it and no camera is served.

import jobStyles from './JobLine.module.css'
import styles from './Measuring.module.css'

import { useState } from 'preact/hooks'

import { LogInHint } from '../access/LogInHint'
import { messageOf, request } from '../api/api'
import { plural } from '../ui/format'
import { type Job, latest } from './jobs'
import { JobLine } from './JobLine'

interface MeasuringProps {
  family: string
  jobs: readonly Job[]
  busy: Job | null
  admin: boolean
  connected: number
  onStarted: () => void
}

export function Measuring({ family, jobs, busy, admin, connected, onStarted }: MeasuringProps) {
  const [refusal, setRefusal] = useState('')
  const start = () => {
    setRefusal('')
    request('POST /v1/models/{family}/profile', { path: { family } })
      .catch((error: unknown) => setRefusal(messageOf(error)))
      .finally(onStarted)
  }
  return (
    <div class={styles.measuring}>
      <button type="button" disabled={!admin || busy !== null || connected > 0} onClick={start}>Measure {family} again</button>
      {!admin && <LogInHint scope="admin" to="measure it" />}
      {admin && connected > 0 && busy === null && (
        <span class="muted">Possible while no camera is connected ({plural(connected, 'is', 'are')}): it would take their executor.</span>
      )}
      {admin && <JobLine job={latest(jobs, 'profile', family)} />}
      {refusal && <p class={jobStyles.failed} role="alert">{refusal}</p>}
    </div>
  )
}
