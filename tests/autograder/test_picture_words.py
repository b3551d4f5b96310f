"""Every picture of the course says in its sentence what it shows: another one for wrong answers, and one for nan."""

from __future__ import annotations

import contextlib
import io
import random
import traceback
import types
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.bridge.outside.local import LocalStudent, load
from autograder.checks import pictured
from autograder.course.config import Assignment
from autograder.course.document import load_document
from autograder.course.mistakes_file import mistakes_by_id
from autograder.course.reading import load_course
from autograder.feedback.gallery import LONGEST, PictureFunction, load_gallery
from tests.autograder.sampling import sampled

COURSE = load_course(Path(__file__).parents[2])
# of each picture, two known mistakes that change it
WRONG = {
    "00 reach_over_distance": ("words_are_marked_and_graded", "words_change_while_measuring"),
    "00 computation_graphs": ("one_step_too_many", "pipeline_without_its_last_step"),
    "01 lookup_as_product": ("one_hot_lying_on_its_side", "one_hot_shifted_by_one"),
    "01 who_is_whose_context": ("window_ends_one_early", "centre_is_its_own_context"),
    "01 loss_of_the_game": ("skip_gram_tables_swapped", "repeated_pairs_count_once"),
    "01 words_before_and_after": ("only_one_word_left_out", "question_answers_itself"),
    "02 heatmap_of_the_table": ("sines_first_then_cosines", "sine_and_cosine_swapped"),
    "02 clock_hands": ("sines_first_then_cosines", "sine_and_cosine_swapped"),
    "02 ridge_of_similarity": ("two_sines", "exponent_without_the_two"),
    "02 what_the_module_adds": ("batch_taken_for_time", "table_for_time_first"),
    "02 shuffle_experiment": ("batch_taken_for_time", "table_for_time_first"),
    "02 learned_before_and_after": ("seat_looked_up_by_word", "sentence_number_taken_for_the_seat"),
    "03 who_may_attend_to_whom": ("mask_inverted", "mask_transposed"),
    "03 who_attends_to_whom": ("scores_not_scaled", "scaled_without_the_root"),
    "03 why_divide": ("scores_not_scaled", "scaled_without_the_root"),
    "03 one_query": ("scores_not_scaled", "scaled_without_the_root"),
    "03 gradient_xray": ("keys_and_values_swapped_in_the_head", "question_never_asked"),
    "04 whose_columns_are_whose": (
        "one_head_repeated",
        "stacked_heads_flattened_without_moving_them",
    ),
    "04 follow_one_word": ("split_by_view", "split_into_strips_of_heads"),
    "04 glue_one_word": ("merge_by_view", "merge_interleaves_the_strips"),
    "04 four_heads_four_jobs": ("fused_splits_by_view", "fused_merges_by_view"),
    "04 one_answer_in_two_spellings": ("fuse_puts_keys_first", "fuse_puts_values_first"),
    "05 one_token_normed": ("variance_divided_by_one_less", "eps_outside_the_root"),
    "05 three_sizes": ("variance_divided_by_one_less", "eps_outside_the_root"),
    "05 switches_and_a_hat": ("activation_forgotten", "activation_last"),
    "05 post_norm_diagram": ("pre_norm_for_post_norm", "no_shortcut_around_attention"),
    "05 both_diagrams": ("post_norm_for_pre_norm", "shortcut_from_the_normed_copy"),
    "05 stream_through_24_blocks": ("post_norm_for_pre_norm", "shortcut_from_the_normed_copy"),
    "05 banana_test": ("positions_forgotten", "positions_added_in_every_layer"),
    "06 where_bert_lives": ("pooler_forgotten", "head_of_the_masked_language_model"),
    "06 where_the_gpt2s_live": ("tied_output_layer_counted_twice", "all_gpt2_biases_forgotten"),
    "07 windows_on_the_text": ("answers_not_shifted", "answers_two_steps_later"),
    "07 price_of_a_guess": ("softmax_before_the_loss", "log_softmax_before_the_wrong_axis"),
    "07 ripples": ("no_mask", "mask_one_late"),
    "07 learning_curve": ("gradients_pile_up", "gradients_thrown_away"),
    "07 where_heads_look": ("gradients_pile_up", "gradients_thrown_away"),
    "07 first_words": ("context_cropped_at_the_wrong_end", "context_one_word_short"),
    "07 skyline": ("one_noise_for_all_rows", "likeliest_word_always"),
    "07 one_city": ("one_noise_for_all_rows", "likeliest_word_always"),
    "08 who_looks_where": ("memory_asks_and_writer_answers", "writer_never_asks"),
    "08 two_xrays": ("future_not_hidden", "decoder_mask_upside_down"),
    "08 alignment_while_learning": ("shifted_in_a_circle", "shifted_left"),
    "08 step_by_step": ("begins_without_bos", "begins_with_pad"),
    "09 tape": ("special_words_are_chosen", "only_the_first_special_word_is_spared"),
    "09 who_is_corrected": ("mean_over_all_places", "sum_over_the_places"),
    "09 both_sides": ("second_table", "table_copied_on_the_first_day"),
    "09 best_guesses": ("second_table", "table_copied_on_the_first_day"),
    "10 both_attentions": (
        "attention_without_our_weights",
        "attention_questions_and_answers_swapped",
    ),
    "10 four_blocks": ("encoder_time_first", "encoder_always_relu"),
    "10 who_hides_the_future": (
        "decoder_keys_and_answers_swapped",
        "decoder_questions_and_keys_swapped",
    ),
    "10 turned_weights_and_twins": ("gpt2_square_weight_not_turned", "gpt2_seats_left_behind"),
    "10 tokens_for_a_hundred_letters": ("bpe_second_half_stays", "bpe_counts_once"),
    "11 reported_and_honest": ("shows_the_word_itself", "whole_piece_at_once"),
    "11 four_leak_maps": ("deaf_to_whispers", "map_is_transposed"),
    "11 one_silent_at_a_time": ("silence_is_permanent", "redundant_ones_stay_silent"),
    "11 tests_and_luck": ("overlap_the_other_way_round", "overlap_in_steps_of_n"),
    "12 hands_of_one_vector": ("positions_begin_at_one", "positions_as_shares_of_the_sentence"),
    "12 scores_by_distance": (
        "positions_as_shares_of_the_sentence",
        "halves_where_neighbours_are_asked",
    ),
    "12 who_turns_with_whom": ("neighbours_where_halves_are_asked", "positions_begin_at_one"),
    "13 rectangle_in_the_square": ("staircase_begins_in_the_box", "mask_one_late"),
    "13 pieces_against_the_whole": (
        "no_mask_once_there_is_a_past",
        "square_mask_whatever_the_past",
    ),
    "13 one_more_word": ("everything_read_again", "everything_read_again_with_the_cache"),
    "13 who_shares_with_whom": ("groups_dealt_like_cards", "one_kept_head_for_all"),
    "13 caches_of_models": ("cache_of_keys_only", "cache_of_one_layer"),
    "13 keys_by_and_by": (
        "blocks_old_sums_not_brought_to_the_new_maximum",
        "blocks_only_the_sum_is_brought",
    ),
    "14 what_each_position_contributes": ("padding_in_the_mean", "padding_in_the_count"),
    "14 pooled_vectors": ("padding_pooled_in", "softmax_in_the_model"),
    "14 frozen_and_not": ("lora_adds_nothing", "lora_in_place_of_the_layer"),
    "14 where_the_cards_go": ("not_shuffled", "shuffled_after_the_cut"),
    "14 what_is_taken_for_what": ("each_cell_counts_once", "shares_not_counts"),
    "15 first_loss": ("layer_norms_start_at_zero", "layer_norms_drawn_at_random"),
    "15 schedule": ("warm_up_begins_at_zero", "schedule_one_step_late"),
    "15 arrows_on_a_leash": ("clipped_each_on_its_own", "clipped_number_by_number"),
    "15 two_ways_down_a_valley": ("iterator_used_up", "no_bias_correction"),
    "15 nucleus": ("token_that_reaches_p_left_out", "one_token_too_many"),
    "15 learning_curve_and_gallery": (
        "rms_norm_subtracts_the_mean",
        "rms_norm_divides_by_the_deviation",
    ),
    "16 who_is_asked": ("no_shift", "shifted_twice"),
    "16 loss_and_slope": ("comparison_turned", "sigmoid_without_log"),
    "16 margins_before_and_after": ("no_reference", "only_the_policys_gain"),
    "16 groups_made_comparable": ("mean_of_everything", "mean_over_prompts"),
    "16 flat_on_one_side": ("cut_without_the_minimum", "never_cut"),
    "16 who_still_learns": ("tokens_ratio_of_the_answer", "tokens_summed"),
    "16 reward_against_divergence": ("d_turned", "plain_difference"),
    "17 who_is_told_apart": ("suspects_returned_as_repairs", "last_window_always_dropped"),
    "18 shares_by_length": ("shares_of_scores_alone", "projections_in_the_wrong_half"),
    "18 roofline": ("both_times_added", "the_faster_of_both"),
    "18 error_by_bits": ("one_scale_for_a_row", "one_scale_for_the_table"),
    "18 words_a_step": ("accepts_by_q_over_p", "accepts_with_the_targets_probability"),
}
SHOULD = ("should", "correct", "must", "ought", "expected", "supposed")


def functions_of(assignment: Assignment) -> list[PictureFunction]:
    gallery = load_gallery(COURSE.pictures_file(assignment))
    return [function for functions in gallery.values() for function in functions]


@cache
def known(name: str) -> tuple[Assignment, PictureFunction]:
    number, function = name.split()
    (assignment,) = (a for a in COURSE.assignments if a.name.startswith(f"{number}_"))
    (drawing,) = (one for one in functions_of(assignment) if one.name == function)
    return assignment, drawing


class Spoiled(LocalStudent):
    """A student whose functions and modules answer with one number in place of every real number."""

    def __init__(self, module: types.ModuleType, number: float) -> None:
        super().__init__(module)
        self.number = number

    def __getattr__(self, name: str) -> Any:
        value, number = super().__getattr__(name), self.number
        if isinstance(value, types.FunctionType):
            return lambda *args, **named: spoiled(value(*args, **named), number)
        if isinstance(value, type) and issubclass(value, nn.Module):
            own = {"forward": lambda *args, **named: spoiled(value.forward(*args, **named), number)}
            return type(value.__name__, (value,), own)
        return value


def spoiled(value: Any, number: float) -> Any:
    if isinstance(value, Tensor):
        return value * 0 + number if value.is_floating_point() else value
    if isinstance(value, float):
        return number
    if isinstance(value, (list, tuple)):
        return type(value)(spoiled(item, number) for item in value)
    return (
        {key: spoiled(item, number) for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def words(name: str, text: str, number: float | None = None) -> str:
    """The sentence of a picture of a solution's text, all of whose numbers may be spoiled."""
    _, function = known(name)
    torch.manual_seed(0)
    random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(text, "solution.py").module
        student = LocalStudent(module) if number is None else Spoiled(module, number)
        return function.drawn(student)[1]


def test_the_table_has_every_picture() -> None:
    drawn = {f"{a.name[:2]} {one.name}" for a in COURSE.assignments for one in functions_of(a)}
    assert drawn == set(WRONG)


@pytest.mark.parametrize("name", sampled(WRONG, "03 gradient_xray".__eq__))
def test_a_wrong_answer_has_another_sentence(name: str) -> None:
    assignment, _ = known(name)
    mistakes = mistakes_by_id(COURSE, assignment)
    right = load_document(COURSE, assignment).text
    sentences = [
        words(name, text) for text in (right, *(mistakes[id].source for id in WRONG[name]))
    ]
    for sentence in sentences:
        assert 20 < len(sentence) <= LONGEST and sentence.endswith((".", "…"))
        assert not any(word in sentence.lower().split() for word in SHOULD)
    assert sentences[0] not in sentences[1:]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300])
@pytest.mark.parametrize("name", sampled(WRONG, "03 gradient_xray".__eq__))
def test_numbers_that_are_none_never_break_a_sentence(name: str, number: float) -> None:
    """What can be drawn has a sentence; what cannot be drawn fails before it."""
    assignment, _ = known(name)
    text = load_document(COURSE, assignment).text
    try:
        assert 20 < len(words(name, text, number)) <= LONGEST
    except (ValueError, OverflowError, ArithmeticError, RuntimeError) as error:
        places = traceback.extract_tb(error.__traceback__)
        assert pictured.__file__ not in [place.filename for place in places], error
