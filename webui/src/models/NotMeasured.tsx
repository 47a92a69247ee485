// In the place of the plot: the accuracy is not known, and how it becomes known.

import { Command } from '../ui/Command'
import type { Family } from './families'

export function NotMeasured({ family }: { family: Family }) {
  if (family.task === 'embed') return <p class="muted">Accuracy cannot be measured from pictures alone.</p>
  return (
    <div class="muted" data-testid="not-measured">
      <p>The accuracy was not measured on this box. With labelled pictures of yours:</p>
      <Command text={`edgebox profile ${family.name} --dataset FOLDER`} />
    </div>
  )
}
