"""An installed app whose tasks cannot be imported."""
