// How far a job is, or how it ended; its place is kept free, so that it moves nothing.

import styles from './JobLine.module.css'

import { clockTime, percent } from '../ui/format'
import type { Job } from './jobs'

export function JobLine({ job }: { job: Job | null }) {
  return (
    <div class={styles.job} role="status" data-testid="job" data-state={job?.state ?? 'none'}>
      {job?.state === 'running' && (
        <>
          <progress max={1} value={job.share} aria-label={job.text} />
          <span>{percent(job.share, 0)}, {job.text}</span>
        </>
      )}
      {job?.state === 'done' && (
        <span class={styles.done}>
          {job.text}{job.ended_ms !== null && <span class="muted">, {clockTime(job.ended_ms)}</span>}
          {job.remarks.length > 0 && <ul class={styles.remarks}>{job.remarks.map((remark) => <li key={remark}>{remark}</li>)}</ul>}
        </span>
      )}
      {job?.state === 'failed' && <span class={styles.failed}>{job.problem?.title}: {job.problem?.detail}</span>}
    </div>
  )
}
