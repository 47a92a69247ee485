// What batches of each size take on one executor, as it was measured on this machine.

import styles from './ProfileTable.module.css'

import { count, milliseconds } from '../ui/format'
import { batchesOf, type Family, type ModelList, timesOf } from './families'

export function ProfileTable({ list, family, executor }: { list: ModelList; family: Family; executor: string }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={`Profile of ${family.name} on ${executor}`}>
      <table class={styles.profile} data-testid="profile">
        <thead>
          <tr>
            <th scope="col">Variant</th>
            <th scope="col" class="figure">Batch</th>
            <th scope="col" class="figure">P50</th>
            <th scope="col" class="figure">P90</th>
            <th scope="col" class="figure">P99</th>
            <th scope="col" class="figure" title="Pictures in a batch by its median time">Pictures a second</th>
          </tr>
        </thead>
        {family.variants.map((variant) => {
          const batches = batchesOf(variant, executor)
          return (
            <tbody key={variant.name}>
              {batches.map((batch, row) => {
                const times = timesOf(list, variant, executor, batch)
                return (
                  <tr key={batch} data-variant={variant.name} data-batch={batch}>
                    {row === 0 && <th scope="rowgroup" rowSpan={batches.length}>{variant.name}</th>}
                    <td class="figure">{batch}</td>
                    <td class="figure">{milliseconds(times?.p50)}</td>
                    <td class="figure">{milliseconds(times?.p90)}</td>
                    <td class="figure">{milliseconds(times?.p99)}</td>
                    <td class="figure">{times && count((batch / times.p50) * 1000)}</td>
                  </tr>
                )
              })}
            </tbody>
          )
        })}
      </table>
    </div>
  )
}
