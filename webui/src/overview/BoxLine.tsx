// The box itself: how busy it is, and what became of all frames. Its loop's figures are on the Scheduler page.

import styles from './BoxLine.module.css'

import { lost, working } from '../settings/destinations'
import { capitalised, count, duration, isKnown, percent, watts } from '../ui/format'
import { bytes } from '../settings/configuration'
import type { BoxState, Destination, Executor, Memory } from '../api/types'
import { CountsLine } from '../figures/CountsLine'
import { lostWord } from '../figures/health'
import { providerName } from '../ui/names'
import { Stat, Stats } from '../ui/Stat'

export function BoxLine({ state }: { state: BoxState }) {
  const { box, cameras } = state
  const connected = cameras.filter((camera) => camera.connected).length
  return (
    <section class={`card live-data ${styles.box}`} aria-label="Box">
      <Stats>
        <Stat name="Cameras" value={count(connected)} note="connected">
          <p class={`muted ${styles.note}`}>
            {box.family && <><span title="Of cameras that name no model">Model {box.family}</span><br /></>}
            Up for {duration(box.uptime_s)}
          </p>
        </Stat>
        {box.executors.map((executor) => (
          <ExecutorStat
            key={executor.id}
            executor={executor}
            memory={box.memory.find((each) => each.executor === executor.id)}
            window_s={box.window_s}
          />
        ))}
        <Stat name="Queue" value={count(box.queue_length)} note="waiting now" title="Frames at the box that wait or are being decoded" />
        {box.energy.length > 0 && <EnergyStat energy={box.energy} />}
        {box.destinations.length > 0 && <EventsOutStat destinations={box.destinations} />}
      </Stats>
      <div class={styles.totals}>
        <h2>All cameras, since the start</h2>
        <CountsLine counts={box.counts} />
      </div>
    </section>
  )
}

/** What the machine's counters and sensors of energy say; a board has one for each supply. */
function EnergyStat({ energy }: { energy: BoxState['box']['energy'] }) {
  return (
    <Stat
      name="Power"
      value={energy.map(({ power_w }) => watts(power_w)).join(', ')}
      note={energy.map(({ source }) => source).join(', ')}
      title="Electric power that the machine's own counters or sensors measured, mean of the last minute"
    />
  )
}

/** Whether events arrive; Settings has each destination. */
function EventsOutStat({ destinations }: { destinations: readonly Destination[] }) {
  const sum = (amount: (each: Destination) => number) => count(destinations.reduce((all, each) => all + amount(each), 0))
  const up = working(destinations)
  return (
    <Stat
      name="Events out"
      value={`${count(up)} of ${count(destinations.length)}`}
      note="up"
      title="Places that events are sent to and that take them; more in Settings"
    >
      <p class={up < destinations.length ? styles.remark : `muted ${styles.note}`} data-testid="events-out-stat">
        {sum(({ queued }) => queued)} waiting, {sum(lost)} lost
      </p>
    </Stat>
  )
}

function ExecutorStat({ executor, memory, window_s }: { executor: Executor; memory: Memory | undefined; window_s: number }) {
  const provider = providerName(executor.provider)
  const batch = isKnown(executor.batch_size_mean) ? `, ${executor.batch_size_mean.toFixed(1)} requests a batch` : ''
  return (
    <Stat
      name={executor.id}
      value={percent(executor.utilisation, 0)}
      note="busy"
      title={`Share of the last ${window_s} s in which ${executor.id} was running a batch`}
    >
      <div class="meter" aria-hidden="true">
        <div style={{ width: `${Math.min(1, executor.utilisation ?? 0) * 100}%` }} />
      </div>
      <p class={`muted ${styles.note}`}>
        {executor.device !== '' && <>{provider} · {executor.device}<br /></>}
        {executor.running ?? (executor.device !== '' ? 'idle' : 'runs nothing')}{batch}
        {isKnown(executor.threads_mean) && executor.threads > 1 && (
          <>
            <br />
            <span title="CPU threads that computed, on average over the same time, of those that a batch may have">
              {executor.threads_mean.toFixed(1)} of {executor.threads} threads
            </span>
          </>
        )}
        {isKnown(executor.core_seconds) && (
          <>
            <br />
            <span data-testid="core-seconds" title={`CPU threads that computed for ${executor.id}, over time, since the box started`}>
              {count(Math.round(executor.core_seconds))} core-seconds
            </span>
          </>
        )}
        {memory && <><br />{bytes(memory.used_bytes)} of {bytes(memory.limit_bytes)} in memory</>}
      </p>
      {executor.note && <p class={styles.remark}>{executor.note}</p>}
      {executor.state !== 'up' && (
        <p class={styles.remark} data-testid="executor-lost">
          {`${capitalised(lostWord(executor))}: ${executor.last_error?.text ?? executor.state}`}{executor.retry_s !== null && `; the next try is in ${Math.ceil(executor.retry_s)} s`}
        </p>
      )}
    </Stat>
  )
}
