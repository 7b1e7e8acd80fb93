import { hooks } from './atoll'
import { navigate } from './router'
import { Field, Notice, onSubmit } from './ui'

/** Each company that is a customer is a workspace, whose members see its tickets. */
export function CompanyForm() {
  const create = hooks.useCreateWorkspace()
  const activate = hooks.useActivateWorkspace()
  const add = async (name: string) => {
    const { _id } = await create.mutateAsync({ name })
    await activate.mutateAsync(_id)
    navigate('/')
  }
  return (
    <form className="narrow" onSubmit={onSubmit(({ name = '' }) => void add(name).catch(() => {}))}>
      <h1>Add your company</h1>
      <p>Everybody in a company sees its tickets.</p>
      <Field label="Name of the company">
        <input name="name" autoComplete="organization" required />
      </Field>
      <Notice error={create.error ?? activate.error} />
      <button type="submit" disabled={create.isPending}>
        Add company
      </button>
    </form>
  )
}

/** Support works for several companies, one at a time. */
export function CompanySwitcher({ active }: { active: string | undefined }) {
  const { data: companies = [] } = hooks.useWorkspaces()
  const activate = hooks.useActivateWorkspace()
  if (!companies.length) return null
  const change = (id: string) => {
    navigate('/')
    activate.mutate(id)
  }
  return (
    <select aria-label="Company" value={active ?? ''} onChange={({ target }) => change(target.value)}>
      {!active && <option value="">Choose a company</option>}
      {companies.map(({ _id, name }) => (
        <option key={_id} value={_id}>
          {name}
        </option>
      ))}
    </select>
  )
}
