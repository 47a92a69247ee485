// The accuracy of a variant, and how it is known.

import type { Variant } from './families'

type Known = Pick<Variant, 'accuracy' | 'accuracy_assumed' | 'accuracy_report'>

export function Accuracy({ of: { accuracy, accuracy_assumed, accuracy_report }, digits = 3 }: { of: Known; digits?: number }) {
  if (accuracy_assumed) return <span class="muted" title="Only the order of the variants is known">not measured</span>
  if (!accuracy_report) return <>{accuracy.toFixed(digits)}</>
  const { kind, standard_error, source, pictures } = accuracy_report
  return <span title={`${kind}, standard error ${standard_error.toFixed(3)}, on ${pictures} pictures of ${source}`}>{accuracy.toFixed(digits)} <small class="muted">{kind}</small></span>
}
