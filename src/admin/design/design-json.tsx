import { useState } from 'react'
import type { BlueprintChange } from '../api/schema'
import { CodeEditor } from '../ui/code-editor'
import type { CodeFlaw } from '../ui/code-mirror'
import { findJsonFlaw } from '../ui/json-flaw'
import classes from './design.module.css'
import { type DesignDraft, isSame, toDefinition, toDraft } from './design-draft'
import { type Design, useDesign } from './design-state'
import { findLine, mapPointers } from './json-lines'

/** Returns the definition that a text describes, or what is wrong with its shape. */
function readDefinition(text: string): { definition: BlueprintChange } | { flaw: CodeFlaw } {
  const flaw = findJsonFlaw(text)
  if (flaw) return { flaw }
  const definition = JSON.parse(text)
  const fields = definition?.fields
  if (!Array.isArray(fields)) return { flaw: { line: 1, message: 'A blueprint has a list “fields”.' } }
  const index = fields.findIndex((field) => typeof field?.key !== 'string' || typeof field?.type !== 'string')
  if (index >= 0)
    return {
      flaw: { line: findLine(mapPointers(text), `/fields/${index}`), message: 'A field has a “key” and a “type”.' },
    }
  for (const part of ['permissions', 'limitations'])
    if (definition[part] !== undefined && !isListOfObjects(definition[part]))
      return { flaw: { line: findLine(mapPointers(text), `/${part}`), message: `“${part}” is a list of objects.` } }
  return { definition }
}

const isListOfObjects = (value: unknown) =>
  Array.isArray(value) && value.every((each) => each && typeof each === 'object' && !Array.isArray(each))

const writeDefinition = (draft: DesignDraft) => JSON.stringify(toDefinition(draft), null, 2)

/** Returns the refused parts of a text at their lines. */
function locateInText(text: string, { draft, flaws }: Design): CodeFlaw[] {
  if (!flaws.length) return []
  const lines = mapPointers(text)
  return flaws.map(({ path, message }) => {
    const id = /^\/fields\/([^/]+)/.exec(path)?.[1]
    const index = draft.fields.findIndex((field) => field.id === id)
    const pointer = path.endsWith('/formula')
      ? `/computed/${draft.fields[index]?.key}`
      : path.replace(/^\/fields\/[^/]+/, `/fields/${index}`)
    return { line: findLine(lines, pointer), message }
  })
}

/** The whole definition of a blueprint as the API takes it. */
export function DesignJson() {
  const design = useDesign()
  const { before, draft, update } = design
  const [typed, setTyped] = useState(() => writeDefinition(draft))
  const read = readDefinition(typed)
  // What is typed stays as it is; a design that changed otherwise replaces it.
  const isOwn = 'flaw' in read || isSame(toDefinition(toOwnDraft(read.definition, design)), toDefinition(draft))
  const text = isOwn ? typed : writeDefinition(draft)
  const flaws = 'flaw' in read && isOwn ? [read.flaw] : locateInText(text, design)
  const change = (next: string) => {
    setTyped(next)
    const now = readDefinition(next)
    if ('definition' in now) update(() => toOwnDraft(now.definition, design))
  }
  return (
    <div className={classes.wide}>
      <CodeEditor
        label={`Definition of ${before.name}`}
        isTall
        description="To rename a field, keep its old key as “renamedFrom”."
        language="json"
        value={text}
        error={flaws[0] && `Line ${flaws[0].line}: ${flaws[0].message}`}
        flaws={flaws}
        onChange={change}
      />
    </div>
  )
}

const toOwnDraft = (definition: BlueprintChange, { before }: Design) =>
  toDraft(
    definition,
    before.fields.map(({ key }) => key),
  )
