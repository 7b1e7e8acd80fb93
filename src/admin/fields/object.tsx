import { Skeleton } from '@mantine/core'
import { IconBraces } from '@tabler/icons-react'
import { lazy, Suspense } from 'react'
import { EXISTENCE_OPERATORS } from '../data/operators'
import type { CellProps, FieldKind, InputProps } from './field-kind'
import { valueListInput } from './list-input'

const ObjectForm = lazy(async () => ({ default: (await import('./object-form')).ObjectForm }))

const MAX_SHOWN_CHARACTERS = 200

const ObjectInput = (props: InputProps) => (
  <Suspense fallback={<Skeleton height={80} animate={false} />}>
    <ObjectForm {...props} />
  </Suspense>
)

/** JSON on one line, and all of it on hover. */
const ObjectCell = ({ value }: CellProps) => (
  <code title={JSON.stringify(value, null, 2)?.slice(0, 2_000)}>
    {JSON.stringify(value)?.slice(0, MAX_SHOWN_CHARACTERS)}
  </code>
)

export const object: FieldKind = {
  label: 'Object',
  icon: IconBraces,
  operators: EXISTENCE_OPERATORS,
  width: 220,
  Cell: ObjectCell,
  Input: ObjectInput,
  ListInput: valueListInput(ObjectInput),
}
