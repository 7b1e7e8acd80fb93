import classes from './state-tag.module.css'

type StateTagProps = { label: string; tone?: 'good' | 'warning' | 'bad' | 'neutral' }

/** A state as a quiet tag: green and amber for what goes well or needs a look, red for what failed. */
export const StateTag = ({ label, tone = 'neutral' }: StateTagProps) => (
  <span className={`${classes.tag} ${classes[tone]}`}>{label}</span>
)
