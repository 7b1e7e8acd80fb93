import type { CompletionSource } from '@codemirror/autocomplete'
import { Button } from '@mantine/core'
import { useMemo } from 'react'
import { CodeEditor } from '../ui/code-editor'
import type { DraftField } from './design-draft'
import { FORMULA_FUNCTIONS } from './formula-functions'

type FormulaInputProps = {
  field: DraftField
  siblings: DraftField[]
  error?: string
  onChange: (part: Partial<DraftField>) => void
}

/** Returns a source of suggestions: the fields of a blueprint, and the functions of formulas. */
function suggestNames(keys: string[]): CompletionSource {
  const options = [
    ...keys.map((label) => ({ label, type: 'property', detail: 'field' })),
    ...FORMULA_FUNCTIONS.map((name) => ({ label: `$${name}`, type: 'function', apply: `$${name}(` })),
  ]
  return (context) => {
    const word = context.matchBefore(/\$?\w*/)
    return word && (word.from < word.to || context.explicit) ? { from: word.from, options, validFor: /^\$?\w*$/ } : null
  }
}

/** The formula that computes a field from the others. */
export function FormulaInput({ field, siblings, error, onChange }: FormulaInputProps) {
  const keys = siblings.filter(({ id, key }) => id !== field.id && key).map(({ key }) => key)
  const names = keys.join(' ')
  const complete = useMemo(() => suggestNames(names.split(' ')), [names])
  return (
    <div>
      <CodeEditor
        label="Formula"
        description="JSONata, computed at each write: $string($number(price) * count)"
        language="typescript"
        value={field.formula ?? ''}
        error={error}
        complete={complete}
        onChange={(formula) => onChange({ formula })}
      />
      <Button variant="subtle" mt={4} onClick={() => onChange({ formula: undefined })}>
        Remove the formula
      </Button>
    </div>
  )
}
