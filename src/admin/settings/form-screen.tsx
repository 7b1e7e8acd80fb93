import type { ReactNode } from 'react'
import type { ApiRequest } from '../ui/api-button'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { Screen } from '../ui/screen'
import classes from './form-screen.module.css'

type FormScreenProps = {
  title: string
  request: ApiRequest
  /** Where the settings are kept, in one sentence. */
  source: string
  error: unknown
  /** The id of the form that the button saves. */
  form?: string
  /** What follows the form. */
  more?: ReactNode
  /** The panel beside the form. */
  panel?: ReactNode
  children: ReactNode
}

/** A screen of settings: a narrow form, what keeps them, and the button that saves. */
export const FormScreen = ({ title, request, source, error, form, more, panel, children }: FormScreenProps) => (
  <Screen title={title} request={request}>
    <div className={classes.column}>
      {error ? <ProblemMessage error={error} /> : children}
      <footer className={classes.footer}>
        {form && <SaveButton form={form} />}
        <p className={classes.source}>{source}</p>
      </footer>
      {more}
    </div>
    {panel}
  </Screen>
)
