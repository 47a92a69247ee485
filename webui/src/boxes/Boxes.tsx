// All boxes of the fleet, as this one knows them: who is up, how busy each is, who cannot be asked and why.

import notices from '../ui/notices.module.css'
import styles from './Boxes.module.css'

import { useMay } from '../access/session'
import { usePolled } from '../api/polling'
import { hashOf } from '../app/route'
import { SCOPES } from '../app/scopes'
import type { Health } from '../figures/health'
import { classes } from '../ui/classes'
import { count, percent, plural } from '../ui/format'
import { HealthIcon } from '../ui/icons'
import { Stat, Stats } from '../ui/Stat'
import { type Fleet, type FleetBox, inOrder, loadText, nameOf, pageOf, standingOf, sumsOf } from './boxes'

const PERIOD_MS = 3_000

export function Boxes({ inFleet }: { inFleet: boolean }) {
  const { answer, error } = usePolled('GET /v1/fleet', inFleet ? {} : null, PERIOD_MS)
  return (
    <main class={`live-data ${styles.page}`} aria-label="Boxes">
      {!inFleet && <Alone />}
      {error && <p class={`card ${notices.broken}`} role="alert">{answer ? 'These figures are old' : 'The boxes cannot be shown'}: {error.message}</p>}
      {inFleet && !error && !answer && <p class={notices.opening} aria-busy="true">Loading…</p>}
      {answer && <FleetCards fleet={answer} />}
    </main>
  )
}

function Alone() {
  const mayRead = useMay(SCOPES.settings)
  return (
    <section class={notices.empty} aria-labelledby="alone-title">
      <h2 id="alone-title">This box is alone</h2>
      <p>Several boxes can share their cameras: one that has no room sends its cameras to another, and when one dies, the others take them.</p>
      <p>For that, give each box the section <code>[fleet]</code> in its configuration file, with the addresses of all boxes and a secret that they share, and restart it. The documentation describes it under “Several boxes” (docs/how-to/fleet.md).</p>
      <p><a href={hashOf({ page: 'overview' })}>The cameras of this box</a>{mayRead && <> · <a href={hashOf({ page: 'settings' })}>Its configuration</a></>}</p>
    </section>
  )
}

function FleetCards({ fleet: { boxes, left_out } }: { fleet: Fleet }) {
  const here = boxes[0]
  return (
    <>
      <SumsCard boxes={boxes} leftOut={left_out.length} />
      <section class={`card ${styles.card}`} aria-labelledby="boxes-title">
        <h2 id="boxes-title">Boxes that are up</h2>
        <ul>
          {inOrder(boxes).map((box) => (
            <BoxRow key={box.box} box={box} isHere={box === here} isOtherVersion={box.version !== here?.version} />
          ))}
        </ul>
        {boxes.length === 1 && <p class="muted">No other box of the fleet is up.</p>}
      </section>
      {left_out.length > 0 && (
        <section class={`card ${styles.card}`} aria-labelledby="left-out-title" data-testid="left-out">
          <h2 id="left-out-title">Boxes that cannot be asked</h2>
          <ul>
            {left_out.map(({ address, reason }) => (
              <li key={address} class={`health-failing ${styles.leftOut}`} data-address={address}>
                <span class={styles.health}><HealthIcon health="failing" /></span>
                <strong>{address}</strong>
                <span>{reason}</span>
              </li>
            ))}
          </ul>
          <p class="muted">This box sends no cameras there, and asks again every second.</p>
        </section>
      )}
    </>
  )
}

function SumsCard({ boxes, leftOut }: { boxes: readonly FleetBox[]; leftOut: number }) {
  const { cameras, cameras_max, load_mean, load_max, versions } = sumsOf(boxes)
  const [version = ''] = versions
  return (
    <section class="card" aria-label="All boxes" data-testid="boxes-sums">
      <Stats>
        <Stat name="Boxes" value={count(boxes.length)} note={leftOut > 0 ? `up, ${count(leftOut)} cannot be asked` : 'up'} />
        <Stat name="Cameras" value={count(cameras)} note={`of at most ${count(cameras_max)}`} />
        <Stat
          name="Load"
          value={percent(load_mean, 0)}
          note={load_max === null ? 'no box serves' : `on average, ${percent(load_max, 0)} at most`}
          title="What cameras need at the smallest variants, as a share of what a box may plan; of the boxes that serve"
        />
        <Stat name="Version" value={versions.length === 1 ? version : plural(versions.length, 'version')} note={versions.length === 1 ? '' : versions.join(', ')} />
      </Stats>
    </section>
  )
}

interface BoxRowProps {
  box: FleetBox
  /** Whether it is the box whose page this is. */
  isHere: boolean
  /** Whether its version is not that of the box whose page this is. */
  isOtherVersion: boolean
}

function BoxRow({ box, isHere, isOtherVersion }: BoxRowProps) {
  const page = isHere ? null : pageOf(box)
  const standing = standingOf(box)
  const health: Health = standing !== 'serving' || box.load > 1 ? 'strained' : 'good'
  return (
    <li class={`health-${health} ${styles.box}`} data-testid="box" data-box={nameOf(box)} data-standing={standing}>
      <p class={styles.name}>
        <strong>{nameOf(box)}</strong>
        {isHere && <span class={styles.here}>this box</span>}
      </p>
      <p class={styles.address}>{page === null ? box.address : <a href={page}>{box.address}</a>}</p>
      <div class={styles.load}>
        <div class="meter" aria-hidden="true"><div style={{ width: `${Math.min(1, box.load) * 100}%` }} /></div>
        <p class={classes(box.load > 1 && styles.strained)}>{loadText(box)}</p>
      </div>
      <p class={styles.cameras}>{count(box.cameras)} of {plural(box.cameras_max, 'camera')}</p>
      <p class={classes(styles.version, isOtherVersion && styles.strained)}>{box.version}{isOtherVersion && ', not as this box'}</p>
      <p class={styles.standing}><span class={styles.health}><HealthIcon health={health} /></span> {standing}</p>
    </li>
  )
}
