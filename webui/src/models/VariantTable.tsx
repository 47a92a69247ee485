// The variants of a family: size, accuracy, what one picture takes, and which cameras send for it.

import styles from './VariantTable.module.css'

import { classes } from '../ui/classes'
import { milliseconds } from '../ui/format'
import { timesOf } from './families'
import { hashOf } from '../app/route'
import { Accuracy } from './Accuracy'
import type { MarksProps } from './AccuracyPlot'

export function VariantTable({ list, family, executor, users, hovered, onHover }: MarksProps) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={`Variants of ${family.name}`}>
      <table class={styles.variants} data-testid="variants">
        <thead>
          <tr>
            <th scope="col">Variant</th>
            <th scope="col" class={`figure ${styles.roomy}`}>Input px</th>
            <th scope="col" class="figure">Accuracy</th>
            <th scope="col" class="figure">P50</th>
            <th scope="col" class={`figure ${styles.roomy}`}>P90</th>
            <th scope="col" class="figure">P99</th>
            <th scope="col">Cameras</th>
          </tr>
        </thead>
        <tbody>
          {family.variants.map((variant) => {
            const times = timesOf(list, variant, executor, Math.min(...Object.keys(variant.profiles[executor] ?? {}).map(Number)))
            const cameras = users.get(variant.name) ?? []
            return (
              <tr
                key={variant.name} data-variant={variant.name} class={classes(cameras.length > 0 && styles.used, hovered === variant.name && styles.hovered)}
                onMouseEnter={() => onHover(variant.name)} onMouseLeave={() => onHover(null)}
              >
                <th scope="row">
                  {variant.name} <small class={`${styles.tight} muted`}>{variant.width_px} × {variant.height_px}</small>
                  {variant.dominated && <small class={styles.aside}>not offered: {variant.dominated}</small>}
                </th>
                <td class={`figure ${styles.roomy}`}>{variant.width_px} × {variant.height_px}</td>
                <td class="figure"><Accuracy of={variant} /></td>
                <td class="figure">{milliseconds(times?.p50)}</td>
                <td class={`figure ${styles.roomy}`}>{milliseconds(times?.p90)}</td>
                <td class="figure">{milliseconds(times?.p99)}</td>
                <td class={styles.cameras} title={cameras.join(', ')}>
                  {cameras.length > 0 && <strong>{cameras.length}</strong>}
                  {cameras.slice(0, NAMED).map((camera) => <a key={camera} class={styles.roomy} href={hashOf({ page: 'camera', camera })}>{camera}</a>)}
                  {cameras.length > NAMED && <span class={`${styles.roomy} muted`}>and {cameras.length - NAMED} more</span>}
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

const NAMED = 3
