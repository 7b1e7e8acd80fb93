import { Input, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { use } from 'react'
import { BLUEPRINT_ROLES, useHasRole } from '../api/roles'
import type { Blueprint } from '../api/schema'
import type { DraftField } from './design-draft'
import { fieldIndexesQuery } from './design-queries'
import { DesignContext } from './design-state'
import {
  describeCompoundIndex,
  describeIndex,
  getIndexChoice,
  INDEX_WORDS,
  type IndexChoice,
  listIndexChoices,
  toIndexed,
} from './index-sentences'

type IndexInputProps = { field: DraftField; error?: string; onChange: (part: Partial<DraftField>) => void }

/** When a field has an index, and whether the saved field has one. */
export function IndexInput({ field, error, onChange }: IndexInputProps) {
  // A blueprint that is created has no indexes yet.
  const design = use(DesignContext)
  const choices = listIndexChoices(field)
  return (
    <div>
      <Select
        label="Index"
        description="It finds and sorts entities fast."
        data={choices.map((value) => ({ value, label: INDEX_WORDS[value] }))}
        value={getIndexChoice(field)}
        error={error}
        disabled={choices.length === 1}
        allowDeselect={false}
        onChange={(choice) => choice && onChange({ indexed: toIndexed(choice as IndexChoice, field) })}
      />
      {design && <IndexState blueprint={design.before} id={field.id} />}
    </div>
  )
}

/** Whether a saved field is indexed, and why. Nothing stands here until the list of indexes is there. */
function IndexState({ blueprint: { key, fields }, id }: { blueprint: Blueprint; id: string }) {
  const isEditor = useHasRole(BLUEPRINT_ROLES)
  const { data: indexes } = useQuery({ ...fieldIndexesQuery(key), enabled: isEditor })
  const saved = fields.find((field) => field.key === id)
  if (!saved || !indexes) return null
  const index = indexes.find(({ field, fields }) => field === id && fields.length === 1)
  const compound = indexes.filter(({ fields }) => fields.length > 1 && fields.includes(id))
  return (
    <Input.Description mt={4}>
      {[
        ...(index || !compound.length ? [describeIndex(saved, index)] : []),
        ...compound.map((one) => describeCompoundIndex(saved, one)),
      ].join(' ')}
    </Input.Description>
  )
}
